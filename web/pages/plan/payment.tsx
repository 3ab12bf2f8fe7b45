import type { Billing } from "../../api/types.ts";
import { naira } from "../../format/number.ts";
import { Button } from "../../parts/button.tsx";
import { Panel } from "../../parts/panel.tsx";
import { Time } from "../../parts/time.tsx";
import { openCardPage } from "./plan-view.ts";

/** The card, and what the month has cost so far. Nothing on plans that are not paid here. */
export function Payment({ billing }: { billing: Billing }) {
  const { tier, card } = billing;
  if (tier === "free" || tier === "enterprise") return null;
  return (
    <div class="two">
      <Panel
        title="Card"
        actions={
          card && (
            <Button changes onClick={openCardPage}>
              Use another card
            </Button>
          )
        }
      >
        {card ? (
          <p>
            <b>{card.brand}</b> •••• {card.last4}, expires {card.exp_month}/{card.exp_year}
          </p>
        ) : (
          <p>No card is verified yet.</p>
        )}
      </Panel>
      <Panel title="This month so far">
        <Month of={billing.current_month} />
      </Panel>
    </div>
  );
}

function Month({
  of: { lines, amount_kobo: amount, credit_kobo: credit, due_at: due },
}: {
  of: Billing["current_month"];
}) {
  if (lines.length === 0 && credit === 0) return <p>Nothing to charge yet.</p>;
  return (
    <>
      <dl class="sums">
        {lines.map(({ month, tier, days, days_in_month: all, amount_kobo: sum }) => (
          <>
            <dt>
              {tier}, {days} of {all} days of {month}
            </dt>
            <dd>{naira(sum)}</dd>
          </>
        ))}
        {credit > 0 && (
          <>
            <dt>Paid in advance</dt>
            <dd>− {naira(credit)}</dd>
          </>
        )}
        <dt>
          <b>So far</b>
        </dt>
        <dd>
          <b>{naira(Math.max(0, amount - credit))}</b>
        </dd>
      </dl>
      {due !== null && (
        <p class="soft">
          Charged at the end of the month, <Time at={due} />.
        </p>
      )}
    </>
  );
}
