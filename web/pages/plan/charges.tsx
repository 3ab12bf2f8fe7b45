import type { Billing } from "../../api/types.ts";
import { naira } from "../../format/number.ts";
import { Panel } from "../../parts/panel.tsx";
import { Time } from "../../parts/time.tsx";

type Charge = Billing["charges"][number];

const kinds: Record<Charge["kind"], string> = {
  verification: "Card verification",
  upgrade: "Upgrade",
  subscription: "Subscription",
  closing: "Deletion",
};

const states: Record<Charge["state"], { text: string; tone: "" | "good" | "warn" | "bad" }> = {
  pending: { text: "Not paid yet", tone: "warn" },
  confirmation_required: { text: "To be confirmed", tone: "warn" },
  succeeded: { text: "Paid", tone: "good" },
  failed: { text: "Failed", tone: "bad" },
  superseded: { text: "Replaced", tone: "" },
  refunding: { text: "Refunding", tone: "warn" },
  refunded: { text: "Refunded", tone: "" },
};

/** The latest charges, newest first. An account that was never charged has no such list. */
export function Charges({ of: charges }: { of: readonly Charge[] }) {
  if (charges.length === 0) return null;
  return (
    <Panel title="Charges" isFlush>
      <ul class="rows charges">
        {charges.map(({ reference, kind, amount_kobo: amount, state, reason, created_at: at }) => (
          <li key={reference} class="row">
            <span class="what" title={reference}>
              {kinds[kind]}
            </span>
            <span class="grow">
              <span class={`badge ${states[state].tone}`}>{states[state].text}</span>
              {reason !== null && <span class="soft"> {reason}</span>}
            </span>
            <span class="sum">{naira(amount)}</span>
            <span class="when soft">
              <Time at={at} />
            </span>
          </li>
        ))}
      </ul>
    </Panel>
  );
}
