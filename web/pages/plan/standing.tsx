import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { useLocation } from "preact-iso/router";
import { call } from "../../api/client.ts";
import type { Billing } from "../../api/types.ts";
import { showControls } from "../../format/controls.ts";
import { naira } from "../../format/number.ts";
import { Button, LinkButton } from "../../parts/button.tsx";
import { Time } from "../../parts/time.tsx";
import type { Loaded } from "../../stream/load.ts";
import { endOf } from "./decisions.ts";
import { enforcedPlan, openCardPage, type Plan, type PlanView } from "./plan-view.ts";

/** While a payment is open. */
const pollEveryMs = 5_000;

/**
 * Keeps asking about an open payment while the user waits for it: the stream reports when it is settled, and the status
 * endpoint makes the server ask the processor in case its callback was lost.
 */
export function usePaymentWatch({ data, reload }: Loaded<PlanView>): void {
  const { query } = useLocation();
  const latest = useRef(reload);
  latest.current = reload;
  const id = data?.who.tenant_id;
  const isPending = data?.who.status === "pending_verification";
  const isWaiting = isPending || (query.payment === "returned" && data?.billing?.payment_url != null);
  useEffect(() => {
    if (!isWaiting || id === undefined) return;
    const timer = setInterval(() => {
      if (document.visibilityState === "hidden") return;
      // Without a response, the next poll asks again.
      call(`/v1/tenants/${id}/status`, { credential: null })
        .catch(() => {})
        .finally(() => latest.current());
    }, pollEveryMs);
    return () => clearInterval(timer);
  }, [id, isWaiting]);
}

interface PaidView extends PlanView {
  readonly billing: Billing;
}

/** What keeps the account from its plan, with the single next action. Nothing when all is well. */
export function Standing({ view, plans }: { view: PlanView; plans: readonly Plan[] }) {
  const { who, billing, isSuspendedByOperator } = view;
  const isSuspended = who.status === "suspended";
  // A charge may be outstanding as well: to pay it would not end this suspension.
  if (isSuspended && isSuspendedByOperator) return <SuspendedByOperator view={view} />;
  if (billing) return <Paying view={{ ...view, billing }} plans={plans} />;
  return isSuspended ? (
    <Notice tone="bad">
      <p>Your account is suspended, and no events are accepted. Ask the operator of this server.</p>
    </Notice>
  ) : null;
}

function Paying({ view, plans }: { view: PaidView; plans: readonly Plan[] }) {
  const { who, billing } = view;
  const { query, route } = useLocation();
  const isBack = query.payment === "returned";
  const isOpen = billing.payment_url !== null;
  const wasOpen = useRef(isBack);
  const [isSettled, setSettled] = useState(false);
  useEffect(() => {
    if (wasOpen.current && !isOpen && billing.card !== null) {
      setSettled(true);
      // A later reload no longer counts as a return from a payment.
      if (isBack) route("/plan", true);
    }
    wasOpen.current = isOpen;
  }, [isOpen]);

  const [latest] = billing.charges;
  if (who.status === "suspended") return <Suspended view={view} />;
  if (isBack && isOpen && latest?.state === "pending") return <Checking url={billing.payment_url} />;
  if (who.status === "past_due") return <PastDue view={view} />;
  if (who.status === "pending_verification") return <Pending view={view} plans={plans} />;
  return isSettled ? <Settled view={view} /> : null;
}

function Settled({ view: { who, billing } }: { view: PaidView }) {
  const end = endOf(billing.charges);
  if (end === null) return null;
  if (!end.isPaid) {
    return (
      <Notice tone="bad">
        <p>
          The payment did not go through{inBrackets(end.reason)}. The {who.tier} plan and your saved card stay as they
          were.
        </p>
      </Notice>
    );
  }
  const isNew = who.events_this_month === 0;
  return (
    <Notice tone="good">
      <p>
        Your card is verified, and the {who.tier} plan is active.{isNew && " You can send events now."}
      </p>
      {isNew && <LinkButton href="/welcome">Send an event</LinkButton>}
    </Notice>
  );
}

function Notice({ tone, children }: { tone: "" | "good" | "warn" | "bad"; children: ComponentChildren }) {
  return (
    <div class={`notice standing ${tone}`} role="status">
      {children}
    </div>
  );
}

const AnotherCard = () => (
  <Button changes kind="primary" onClick={openCardPage}>
    Use another card
  </Button>
);

function Checking({ url }: { url: string | null }) {
  return (
    <Notice tone="warn">
      <p>Checking the payment. The result appears here in a few seconds. If you have not paid yet, you can go back.</p>
      {url !== null && <LinkButton href={url}>Open the payment page</LinkButton>}
    </Notice>
  );
}

function SuspendedByOperator({ view: { suspendedFor } }: { view: PlanView }) {
  return (
    <Notice tone="bad">
      <p>
        The operator of this server has suspended your account: no events are accepted, and none are delivered. Ask them
        to resume it.
        {suspendedFor !== null && ` Their reason: ${showControls(suspendedFor)}`}
      </p>
    </Notice>
  );
}

function Suspended({ view: { billing } }: { view: PaidView }) {
  return (
    <Notice tone="bad">
      <p>
        Your account is suspended, because a charge failed{" "}
        {billing.past_due_since !== null && <Time at={billing.past_due_since} />} and every retry since then failed too
        {reasonOf(billing)}. No events are accepted until it is paid. Verify a card to pay it at once.
      </p>
      <AnotherCard />
    </Notice>
  );
}

function PastDue({ view: { billing } }: { view: PaidView }) {
  return (
    <Notice tone="bad">
      <p>
        A charge failed{reasonOf(billing)}.{" "}
        {billing.next_attempt_at !== null && (
          <>
            It is retried automatically <Time at={billing.next_attempt_at} />; if it still fails a week after the first
            time, your account is suspended.{" "}
          </>
        )}
        Verify a card to pay it at once.
      </p>
      <AnotherCard />
    </Notice>
  );
}

const reasonOf = ({ charges }: Billing): string =>
  inBrackets(charges.find(({ kind, state }) => kind === "subscription" && state === "failed")?.reason ?? null);

const inBrackets = (reason: string | null): string => (reason === null ? "" : ` (${reason})`);

function Pending({ view: { who, billing }, plans }: { view: PaidView; plans: readonly Plan[] }) {
  const before = enforcedPlan(plans, who);
  const [latest] = billing.charges;
  const toConfirm = billing.charges.find(({ state }) => state === "confirmation_required");
  const refused = latest && ["failed", "refunding", "refunded"].includes(latest.state) ? latest.reason : null;
  // For a page that is not paid yet: the reason is the last card's, or the processor's for not making the page.
  const problem = latest?.state === "pending" ? latest.reason : null;
  return (
    <Notice tone="warn">
      <p>
        {refused !== null && `The last card was declined (${refused}). `}
        {problem !== null && `${problem}. `}
        {toConfirm
          ? `Your bank asks you to confirm the charge of ${naira(toConfirm.amount_kobo)}. `
          : "Verify a card to activate your plan. This charges NGN 100.00 once. "}
        {before
          ? `That completes the upgrade to ${who.tier}; until then the limits of the ${before.tier} plan apply.`
          : "You can send events from then on."}
      </p>
      {billing.payment_url !== null && (
        <LinkButton kind="primary" href={billing.payment_url}>
          {toConfirm ? "Confirm the charge" : "Verify a card"}
        </LinkButton>
      )}
    </Notice>
  );
}
