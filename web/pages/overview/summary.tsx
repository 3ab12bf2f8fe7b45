import type { ComponentChildren } from "preact";
import type { Stats } from "../../api/types.ts";
import { count, percent } from "../../format/number.ts";
import { Icon, type IconName } from "../../parts/icon.tsx";
import { Sparkline } from "../../parts/sparkline.tsx";
import { Skeleton } from "../../parts/states.tsx";
import { Time } from "../../parts/time.tsx";
import { account } from "../../session/account.ts";

/** Is it working, what waits, what failed, how much is left: four figures, each of which leads to what it counts. */
export function Summary({ stats: { total, waiting, buckets } }: { stats: Stats }) {
  const ended = total.delivered + total.failed;
  const success = `${percent(total.delivered, ended)} success`;
  return (
    <dl class="figures">
      <Figure
        name="Delivered"
        tone="delivered"
        icon="check"
        href="/events?state=delivered"
        value={count(total.delivered)}
      >
        {ended > 0 && (isAllLost(total) ? <b class="failed">{success}</b> : success)}
      </Figure>
      <Figure name="Waiting" tone="waiting" icon="wait" href="/events?state=waiting" value={count(waiting.records)}>
        {waiting.oldestIngestionTimestamp !== null && (
          <>
            oldest <Time at={waiting.oldestIngestionTimestamp} />
          </>
        )}
      </Figure>
      <Figure name="Failed" tone="failed" icon="cross" href="/events?state=failed" value={count(total.failed)}>
        <Sparkline values={buckets.map(({ failed }) => failed)} />
      </Figure>
      <Month />
    </dl>
  );
}

const isAllLost = ({ delivered, failed }: Stats["total"]) => delivered === 0 && failed > 0;

/**
 * How it goes, in words. It is always there and always as high: a line that came and went would move what is below it from
 * under the pointer. @param since "hour", "6 hours"
 */
export function Verdict({ stats: { total }, since }: { stats: Stats; since: string }) {
  const { delivered, failed } = total;
  const ended = delivered + failed;
  if (failed === 0) {
    return (
      <p class="verdict soft">
        {ended === 0 ? `No delivery has ended in the last ${since}.` : `Every delivery of the last ${since} succeeded.`}
      </p>
    );
  }
  return (
    <p class="verdict">
      <span class="state failed">
        <Icon name="cross" />
        {isAllLost(total) ? (
          <strong>
            Nothing was delivered in the last {since}:{" "}
            {ended === 1 ? "the only delivery" : `all ${count(ended)} deliveries`} failed.
          </strong>
        ) : (
          `${count(failed)} of ${count(ended)} deliveries of the last ${since} failed.`
        )}
      </span>{" "}
      <a href="/events?state=failed">See what failed</a>
    </p>
  );
}

function Figure({
  name,
  tone,
  icon,
  href,
  value,
  children,
}: {
  name: string;
  tone: string;
  icon: IconName;
  href: string;
  value: ComponentChildren;
  children: ComponentChildren;
}) {
  return (
    <div class="figure">
      <dt>
        <a class="spread" href={href}>
          <span class={`state ${tone}`}>
            <Icon name={icon} />
          </span>
          {name}
        </a>
      </dt>
      <dd>
        <strong>{value}</strong>
        <span class={`more ${tone}`}>{children}</span>
      </dd>
    </div>
  );
}

const nearlyAll = 0.8;

/** What is used of the month's quota that is in force. */
function Month() {
  const who = account.value;
  const used = who?.events_this_month ?? 0;
  const limit = who?.enforced_events_per_month ?? 0;
  const share = limit === 0 ? 0 : used / limit;
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
            <span class="more">of {count(limit)} events</span>
          </>
        ) : (
          <Skeleton width="60%" height="20px" />
        )}
      </dd>
      <dd class={`meter ${share >= 1 ? "bad" : share >= nearlyAll ? "warn" : ""}`}>
        <i style={{ width: `${Math.min(100, share * 100)}%` }} />
      </dd>
    </div>
  );
}

/** The shape of what comes. */
export function SummarySkeleton() {
  return (
    <>
      <p class="verdict">
        <Skeleton width="320px" />
      </p>
      <div class="figures">
        {["Delivered", "Waiting", "Failed", "This month"].map((name) => (
          <div key={name} class="figure">
            <span class="soft">{name}</span>
            <Skeleton width="55%" height="24px" />
          </div>
        ))}
      </div>
    </>
  );
}
