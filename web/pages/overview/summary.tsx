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
  return (
    <dl class="figures">
      <Figure
        name="Delivered"
        tone="delivered"
        icon="check"
        href="/events?state=delivered"
        value={count(total.delivered)}
      >
        {ended > 0 && `${percent(total.delivered, ended)} success`}
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
    <div class="figures">
      {["Delivered", "Waiting", "Failed", "This month"].map((name) => (
        <div key={name} class="figure">
          <span class="soft">{name}</span>
          <Skeleton width="55%" height="24px" />
        </div>
      ))}
    </div>
  );
}
