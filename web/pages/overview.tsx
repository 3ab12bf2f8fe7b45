import "./overview.css";
import { useCallback, useEffect, useMemo, useRef } from "preact/hooks";
import { useLocation } from "preact-iso/router";
import { call } from "../api/client.ts";
import { serverNow } from "../api/server-time.ts";
import type { EventPage, Stats } from "../api/types.ts";
import { isUtc } from "../format/zone.ts";
import { LinkButton } from "../parts/button.tsx";
import { Chart } from "../parts/chart.tsx";
import { PageHead } from "../parts/page.tsx";
import { Panel } from "../parts/panel.tsx";
import { Empty, Shown, Skeleton } from "../parts/states.tsx";
import { useRefresh } from "../stream/live.ts";
import { useLoaded } from "../stream/load.ts";
import { streamState, streamTrouble } from "../stream/stream.ts";
import { latencyChart, outcomeChart } from "./overview/charts.ts";
import { listUrl } from "./overview/list-url.ts";
import { type Range, ranges, readRange, statsQuery, urlOf } from "./overview/range.ts";
import { readSituation } from "./overview/situation.ts";
import { Standing, StandingSkeleton } from "./overview/standing.tsx";
import { Summary } from "./overview/summary.tsx";

/** Is it working, and what failed: of the last hour, or of up to a week. */
export function OverviewPage() {
  const range = readRange(useLocation().query);
  const stats = useStats(range);
  const situation = useSituation(range);
  const isUnused = useIsUnused();
  if (isUnused === true) {
    return (
      <>
        <PageHead title="Overview" />
        <Empty sentence="No events yet. What becomes of each one will appear here.">
          <LinkButton kind="primary" href="/welcome">
            Send your first event
          </LinkButton>
        </Empty>
      </>
    );
  }
  return (
    <>
      <PageHead title="Overview">
        <div class="end">
          <nav class="segments" aria-label="Time range">
            {ranges.map((one) => (
              <a key={one.key} href={urlOf(one)} {...(one.key === range.key && { "aria-current": "true" as const })}>
                {one.name}
              </a>
            ))}
          </nav>
        </div>
      </PageHead>
      <div class="stack">
        <Shown of={isUnused === null ? { ...situation, data: undefined } : situation} skeleton={<StandingSkeleton />}>
          {(data) => (
            <>
              <Standing situation={data} range={range} onChanged={situation.reload} />
              <Summary situation={data} waiting={stats.data?.waiting} />
            </>
          )}
        </Shown>
        {/* What comes above it later would move it. */}
        <Shown
          of={situation.data === undefined && situation.error === null ? { ...stats, data: undefined } : stats}
          skeleton={<ChartsSkeleton range={range} />}
        >
          {(data) => <Charts key={String(isUtc.value)} stats={data} range={range} />}
        </Shown>
      </div>
    </>
  );
}

function Charts({ stats, range }: { stats: Stats; range: Range }) {
  const outcomes = useMemo(() => outcomeChart(stats, range), [stats, range]);
  const latencies = useMemo(() => latencyChart(stats, range), [stats, range]);
  return (
    <div class="charts">
      <Panel title={outcomesTitle(range)}>
        <Chart data={outcomes} hrefOf={eventsOf} />
      </Panel>
      <Panel title={latencyTitle}>
        <Chart data={latencies} hrefOf={eventsOf} />
      </Panel>
    </div>
  );
}

const eventsOf = (from: number, to: number) =>
  listUrl({ from: new Date(from).toISOString(), to: new Date(to).toISOString() });

const outcomesTitle = ({ bucketWords }: Range) => `Deliveries ${bucketWords}, stacked by outcome`;
const latencyTitle = "Response time, p50 and p95";

function ChartsSkeleton({ range }: { range: Range }) {
  return (
    <div class="charts">
      {[outcomesTitle(range), latencyTitle].map((title) => (
        <Panel key={title} title={title}>
          <Skeleton width="100%" height="240px" />
        </Panel>
      ))}
    </div>
  );
}

/** The statistics are written once a second: a read after a message waits for what it tells to be in them. */
const lagMs = 1200;
/** The range moves on even when nothing happens. */
const moveOnMs = 60_000;
/** Faster changes cannot be read, and a week sums 10,000 minutes. */
const refreshMs = 2000;

/** Reading it is several requests, and of days it counts much. */
const situationEveryMs = ({ key }: Range) => (key === ranges[0].key ? 3000 : 10_000);

function useSituation(range: Range) {
  const situation = useLoaded(`situation ${range.key}`, (signal) => readSituation(range, signal));
  useRefresh(
    ["event.accepted", "delivery.attempted", "delivery.finished", "webhook.changed", "account.changed"],
    situationEveryMs(range),
    situation.reload,
  );
  return situation;
}

function useStats(range: Range) {
  const stats = useLoaded(`stats ${range.key}`, (signal) =>
    call<Stats>("/v1/stats", { query: statsQuery(range, serverNow()), signal }),
  );
  // While offline nothing is asked: the bar says so already, and what was read stays.
  const reload = useCallback(() => {
    if (streamState.peek() !== "offline" || streamTrouble.peek() !== null) stats.reload();
  }, [stats.reload]);
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  useRefresh(["event.accepted", "delivery.attempted", "delivery.finished"], refreshMs, () => {
    clearTimeout(timer.current);
    timer.current = setTimeout(reload, lagMs);
  });
  useEffect(() => {
    // What happened just before the page was opened is not in the first answer either.
    timer.current = setTimeout(reload, lagMs);
    const moveOn = setInterval(() => {
      if (document.visibilityState === "visible") reload();
    }, moveOnMs);
    return () => {
      clearTimeout(timer.current);
      clearInterval(moveOn);
    };
  }, [reload]);
  return stats;
}

/** Whether no event has ever arrived; null until it is known. */
function useIsUnused(): boolean | null {
  const any = useLoaded("any event", (signal) =>
    call<EventPage>("/v1/events", { query: { size: 1, payload: false }, signal }),
  );
  const isUnused = any.data?.total === 0;
  useRefresh(["event.accepted"], refreshMs, () => {
    if (isUnused) any.reload();
  });
  // Should it fail, the page itself says so.
  return any.data === undefined && any.error === null ? null : isUnused;
}
