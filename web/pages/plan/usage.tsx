import type { Account } from "../../api/types.ts";
import { keptInWords } from "../../format/kept.ts";
import { count, percent } from "../../format/number.ts";
import { Panel } from "../../parts/panel.tsx";
import { now, Time } from "../../parts/time.tsx";
import { account } from "../../session/account.ts";
import { quotaResetsAt, refusedOf } from "../../session/quota.ts";
import { sells } from "../../session/server.ts";
import type { PlanView } from "./plan-view.ts";

const warnFrom = 0.8;

const words: Record<Account["status"], { text: string; tone: "good" | "warn" | "bad" }> = {
  active: { text: "Active", tone: "good" },
  pending_verification: { text: "Waiting for a payment", tone: "warn" },
  past_due: { text: "A charge is outstanding", tone: "bad" },
  suspended: { text: "Suspended", tone: "bad" },
};

/** The plan, the account's standing, and how much is used. */
export function Usage({ view: { who: read, webhooks } }: { view: PlanView }) {
  // The event count keeps going while the page is open.
  const who = account.value ?? read;
  const { text, tone } = words[who.status];
  return (
    <Panel
      title={sells() ? `${who.tier.slice(0, 1).toUpperCase()}${who.tier.slice(1)} plan` : "Limits"}
      actions={<span class={`badge ${tone}`}>{text}</span>}
    >
      <div class="usage">
        <Quota who={who} />
        <div>
          <p class="soft">Retention</p>
          <p>{keptInWords(who)}</p>
        </div>
        <div>
          <p class="soft">Webhooks</p>
          <p>
            <b>{webhooks}</b> of {who.enforced_webhooks} used
          </p>
          <p>
            <a href="/webhooks">Edit webhooks</a>
          </p>
        </div>
      </div>
    </Panel>
  );
}

function Quota({ who }: { who: Account }) {
  const { events_this_month: used, enforced_events_per_month: quota, refused_this_month: refused } = who;
  if (who.enforced_tier === null) {
    return (
      <div>
        <p class="soft">Events this month</p>
        <p>None are accepted until your account is active.</p>
      </div>
    );
  }
  const share = quota === 0 ? 1 : used / quota;
  const tone = share >= 1 ? "bad" : share >= warnFrom ? "warn" : "";
  // A minute is precise enough, and the text does not keep changing while it is read.
  const resets = <Time at={quotaResetsAt(Math.floor(now.value / 60_000) * 60_000)} />;
  return (
    <div>
      <p class="soft">Events this month</p>
      <p>
        <b>{count(used)}</b> of {count(quota)} ({percent(used, quota)})
      </p>
      <div class={`meter ${tone}`} aria-hidden="true">
        <i style={{ width: `${Math.min(100, share * 100)}%` }} />
      </div>
      {tone === "bad" ? (
        <p class="quota-word bad">Used up: events are refused (429) until the count resets {resets}.</p>
      ) : (
        <p class={tone === "warn" ? "quota-word warn" : "soft"}>
          {tone === "warn" && "Nearly used up. "}The count resets {resets}.
        </p>
      )}
      {refusedOf(who) > 0 && (
        <p class="soft">
          {count(refusedOf(who))} refused: {count(refused.quota)} beyond the quota, {count(refused.invalid)} not valid,{" "}
          {count(refused.inactive)} while the account was inactive.
        </p>
      )}
    </div>
  );
}
