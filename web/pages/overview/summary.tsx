import { useEffect } from "preact/hooks";
import type { Stats } from "../../api/types.ts";
import { count, successWords } from "../../format/number.ts";
import { Figure } from "../../parts/figure.tsx";
import { Icon } from "../../parts/icon.tsx";
import { Skeleton } from "../../parts/states.tsx";
import { now, Time } from "../../parts/time.tsx";
import { account, refreshAccount } from "../../session/account.ts";
import { isNearlyUsedUp, isUsedUp, refusedOf } from "../../session/quota.ts";
import { chartWords } from "./caption.ts";
import { total } from "./failing-card.tsx";
import { listUrl } from "./list-url.ts";
import type { Situation } from "./situation.ts";
import { since } from "./verdict.ts";

/** What arrived, what waits, what failed, how much is left: four figures, each linked to a list of that many. */
export function Summary({ situation, waiting }: { situation: Situation; waiting: Stats["waiting"] | undefined }) {
  const { from, failing, delivered, failed } = situation;
  const ended = delivered.n + failed.n;
  const isKnown = delivered.isExact && failed.isExact && ended > 0;
  const retried = failing.reduce((sum, { waiting }) => sum + waiting, 0);
  const success = successWords(delivered.n, ended, retried);
  return (
    <div class="stack tight">
      <dl class="figures">
        <Figure
          name="Delivered"
          tone="delivered"
          icon="check"
          href={listUrl({ state: "delivered", from })}
          value={total(delivered)}
        >
          {isKnown && (delivered.n === 0 ? <b class="failed">{success}</b> : success)}
        </Figure>
        <Figure
          name="Waiting"
          tone="waiting"
          icon="wait"
          href={listUrl({ state: "waiting" })}
          value={waiting ? count(waiting.records) : <Skeleton width="40px" height="20px" />}
        >
          {waiting && waiting.oldestIngestionTimestamp !== null && (
            <>
              oldest <Time at={waiting.oldestIngestionTimestamp} />
            </>
          )}
        </Figure>
        <Figure
          name="Failed"
          tone="failed"
          icon="cross"
          href={listUrl({ state: "failed", from })}
          value={total(failed)}
        />
        <Month />
      </dl>
      <p class="soft small">
        How deliveries of the events accepted since <span class="nowrap">{since(Date.parse(from), now.value)}</span>{" "}
        stand now{!(delivered.isExact && failed.isExact) && `; lists are counted up to ${count(10_000)}`}.{" "}
        {chartWords(failing.flatMap(({ causes }) => causes))}
      </p>
    </div>
  );
}

const refreshEveryMs = 10_000;

/** How much of the month's quota in force is used. */
function Month() {
  const who = account.value;
  // No message reports a refused event.
  useEffect(() => {
    const refresh = () => void refreshAccount().catch(() => {});
    refresh();
    const timer = setInterval(() => document.visibilityState === "visible" && refresh(), refreshEveryMs);
    return () => clearInterval(timer);
  }, []);
  const used = who?.events_this_month ?? 0;
  const limit = who?.enforced_events_per_month ?? 0;
  const tone = who && isUsedUp(who) ? "bad" : who && isNearlyUsedUp(who) ? "warn" : "";
  return (
    <div class="figure">
      <dt>
        <a class="spread" href="/plan">
          <Icon name="plan" />
          This month
        </a>
      </dt>
      <dd>
        {who ? (
          <>
            <strong>{count(used)}</strong>
            <span class="more">
              of {count(limit)} events · <span class="nowrap">{count(refusedOf(who))} refused</span>
            </span>
          </>
        ) : (
          <Skeleton width="60%" height="20px" />
        )}
      </dd>
      <dd class={`meter ${tone}`}>
        <i style={{ width: `${Math.min(100, limit === 0 ? 0 : (used / limit) * 100)}%` }} />
      </dd>
    </div>
  );
}

/** A placeholder in the shape of the content. */
export const SummarySkeleton = () => (
  <div class="figures">
    {["Delivered", "Waiting", "Failed", "This month"].map((name) => (
      <div key={name} class="figure">
        <span class="soft">{name}</span>
        <Skeleton width="55%" height="24px" />
      </div>
    ))}
  </div>
);
