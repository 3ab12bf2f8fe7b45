import type { ComponentChildren } from "preact";
import { useCallback, useEffect, useMemo, useRef } from "preact/hooks";
import { call } from "../../api/client.ts";
import { serverNow } from "../../api/server-time.ts";
import type { Stats } from "../../api/types.ts";
import { isUtc } from "../../format/zone.ts";
import { Chart } from "../../parts/chart.tsx";
import { Panel } from "../../parts/panel.tsx";
import { Shown, Skeleton } from "../../parts/states.tsx";
import { useRefresh } from "../../stream/live.ts";
import { type Loaded, useLoaded } from "../../stream/load.ts";
import { streamState, streamTrouble } from "../../stream/stream.ts";
import { latencyChart, outcomeChart } from "./charts.ts";
import { listUrl } from "./list-url.ts";
import { type Range, ranges, statsQuery } from "./range.ts";

/** What changes figures of deliveries. */
export const deliveryKinds = ["event.accepted", "delivery.attempted", "delivery.finished", "deliveries.ended"] as const;

/** The statistics are written once a second: a read prompted by a message waits until they include it. */
const lagMs = 1200;
/** The range moves on even when nothing happens. */
const moveOnMs = 60_000;
/** Faster changes would be unreadable, and a week sums 10,000 minutes. */
const refreshMs = 2000;

/** While offline, nothing is requested: the bar says so already, and what was read stays. */
const mayAsk = () => streamState.peek() !== "offline" || streamTrouble.peek() !== null;

/** Calls `reload` once a minute. */
export function useMoveOn(reload: () => void): void {
  useEffect(() => {
    const timer = setInterval(() => {
      if (document.visibilityState === "visible" && mayAsk()) reload();
    }, moveOnMs);
    return () => clearInterval(timer);
  }, [reload]);
}

/** What happened over time, kept up to date. @param webhook id; "": all of them */
export function useStats(range: Range, webhook = ""): Loaded<Stats> {
  const stats = useLoaded(`stats ${range.key} ${webhook}`, (signal) =>
    call<Stats>("/v1/stats", { query: { ...statsQuery(range, serverNow()), ...(webhook && { webhook }) }, signal }),
  );
  const reload = useCallback(() => {
    if (mayAsk()) stats.reload();
  }, [stats.reload]);
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  useRefresh(deliveryKinds, refreshMs, () => {
    clearTimeout(timer.current);
    timer.current = setTimeout(reload, lagMs);
  });
  useEffect(() => {
    // What happened just before the page was opened is not in the first response either.
    timer.current = setTimeout(reload, lagMs);
    return () => clearTimeout(timer.current);
  }, [reload]);
  useMoveOn(stats.reload);
  return stats;
}

/** Both charts over one time axis; a click or a drag leads to the events of that time. */
export function OverTime({ of, range, webhook = "" }: { of: Loaded<Stats>; range: Range; webhook?: string }) {
  const charts = (inPanel: (chartOf: typeof outcomeChart) => ComponentChildren) => (
    <div class="charts">
      <Panel title={`Deliveries ${range.bucketWords}, stacked by outcome`}>{inPanel(outcomeChart)}</Panel>
      <Panel title="Response time, p50 and p95">{inPanel(latencyChart)}</Panel>
    </div>
  );
  return (
    <Shown of={of} skeleton={charts(() => <Skeleton width="100%" height="240px" />)}>
      {(stats) =>
        charts((chartOf) => (
          <Drawn key={String(isUtc.value)} stats={stats} range={range} webhook={webhook} chartOf={chartOf} />
        ))
      }
    </Shown>
  );
}

function Drawn({
  stats,
  range,
  webhook,
  chartOf,
}: {
  stats: Stats;
  range: Range;
  webhook: string;
  chartOf: typeof outcomeChart;
}) {
  const data = useMemo(() => chartOf(stats, range), [stats, range, chartOf]);
  return (
    <Chart
      data={data}
      hrefOf={(from, to) => listUrl({ webhook, from: new Date(from).toISOString(), to: new Date(to).toISOString() })}
    />
  );
}

/** How far back a page looks: each choice has its own URL. */
export const RangeChoice = ({ chosen, urlOf }: { chosen: Range; urlOf(range: Range): string }) => (
  <nav class="segments" aria-label="Time range">
    {ranges.map((one) => (
      <a key={one.key} href={urlOf(one)} {...(one.key === chosen.key && { "aria-current": "true" as const })}>
        {one.name}
      </a>
    ))}
  </nav>
);
