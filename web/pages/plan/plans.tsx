import type { About } from "../../api/types.ts";
import { count, naira } from "../../format/number.ts";
import { Button } from "../../parts/button.tsx";
import { Panel } from "../../parts/panel.tsx";
import { enforcedPlan, type Plan, type PlanView } from "./plan-view.ts";
import type { Upgrade } from "./upgrade-dialog.tsx";

/** The plans side by side, with the way to upgrade. */
export function Plans({
  view,
  plans,
  payments,
  onUpgrade,
}: {
  view: PlanView;
  plans: readonly Plan[];
  payments: About["payments"];
  onUpgrade(upgrade: Upgrade): void;
}) {
  const { who, billing } = view;
  const enforced = enforcedPlan(plans, who);
  const current = plans.findIndex(({ tier }) => tier === who.tier);
  const isHeld = who.status === "past_due" || who.status === "suspended";

  function roleOf(plan: Plan, i: number) {
    if (plan.tier === enforced?.tier) {
      return <span class="badge good">{plan.tier === who.tier ? "Your plan" : "Active until then"}</span>;
    }
    if (plan.tier === who.tier) return <span class="badge warn">Waiting for a payment</span>;
    if (plan.priceKobo === null) return <span class="soft small">Assigned by the operator of this server</span>;
    if (i < current) return null;
    const { tier } = plan;
    const upgrade = { to: plan, from: who.tier, card: billing?.card ?? null, enforced, payments };
    return (
      <Button
        changes
        kind={i === current + 1 ? "primary" : "plain"}
        disabled={isHeld}
        onClick={() => onUpgrade(upgrade)}
        aria-haspopup="dialog"
      >
        Upgrade to {tier} …
      </Button>
    );
  }

  return (
    <Panel title="Plans">
      <ul class="plans">
        {plans.map((plan, i) => (
          <li key={plan.tier} class={plan.tier === who.tier ? "is-current" : ""}>
            <h3>{plan.tier}</h3>
            <p>
              {plan.priceKobo === null
                ? "Invoiced"
                : plan.priceKobo === 0
                  ? "No charge"
                  : `${naira(plan.priceKobo)} a month`}
            </p>
            <p class="soft">
              {count(plan.eventsPerMonth)} events a month
              <br />
              {plan.webhooks === 1 ? "1 webhook" : `${plan.webhooks} webhooks`}
            </p>
            <div class="role">{roleOf(plan, i)}</div>
          </li>
        ))}
      </ul>
      {payments === "sandbox" && (
        <p class="soft plans-note">
          Payments on this server are a sandbox: no real money moves, and the payment page offers test cards.
        </p>
      )}
      {enforced &&
        (enforced.eventsPerMonth !== who.enforced_events_per_month || enforced.webhooks !== who.enforced_webhooks) && (
          <p class="soft plans-note">The operator of this server has set other limits for your account.</p>
        )}
      {isHeld && <p class="soft plans-note">You can upgrade again once the outstanding charge is paid.</p>}
    </Panel>
  );
}
