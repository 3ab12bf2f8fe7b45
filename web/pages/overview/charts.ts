import type { Stats } from "../../api/types.ts";
import { count } from "../../format/number.ts";
import { duration } from "../../format/time.ts";
import { type ChartData, type ChartSeries, peakOf } from "../../parts/chart-data.ts";
import { moment, shortCount } from "../../parts/chart-text.ts";
import type { Range } from "./range.ts";

const dayMs = 86_400_000;

/**
 * What arrived and what became of deliveries. An event is accepted once and delivered to each webhook, possibly more than
 * once; for a single webhook the chart shows failed attempts that will be retried instead of accepted events.
 */
export function outcomeChart({ buckets, total }: Stats, range: Range): ChartData {
  const at = buckets.map((bucket) => Date.parse(bucket.at));
  const delivered = buckets.map((bucket) => bucket.delivered);
  const failed = buckets.map((bucket) => bucket.failed);
  const peak = peakOf(buckets.map((bucket) => bucket.delivered + bucket.failed));
  const series: ChartSeries[] = [
    { name: "Delivered", tone: "delivered", shape: "bar", values: delivered, whole: count(total.delivered) },
    { name: "Failed", tone: "failed", shape: "bar", values: failed, whole: count(total.failed) },
    total.accepted === undefined
      ? {
          name: "To be retried",
          tone: "waiting",
          shape: "bar",
          values: buckets.map(retried),
          whole: count(retried(total)),
        }
      : {
          name: "Accepted",
          tone: "soft",
          shape: "none",
          values: buckets.map(({ accepted = 0 }) => accepted),
          whole: count(total.accepted),
        },
  ];
  const shape = shapeOf(at, range);
  const { span } = shape;
  const most = peak ? ` Peak at ${when(at[peak.index], range)}: ${count(peak.value)} ${range.bucketWords}.` : "";
  return {
    ...shape,
    span: `${span}, with replays`,
    series,
    least: 4,
    tick: shortCount,
    format: count,
    summary: `${sentence(span)}, ${total.accepted === undefined ? "" : `${count(total.accepted)} events were accepted, `}${count(total.delivered)} deliveries succeeded and ${count(total.failed)} failed.${most}`,
  };
}

/**
 * Attempts that failed and were not the last; deliveries that failed without an attempt, because the webhook is disabled,
 * have none.
 */
const retried = ({ attempts, delivered, failed }: Stats["total"]): number => Math.max(0, attempts - delivered - failed);

/** How long receivers take to respond. Every response counts, whatever its status. */
export function latencyChart({ buckets, total }: Stats, range: Range): ChartData {
  const at = buckets.map((bucket) => Date.parse(bucket.at));
  const slowest = buckets.map((bucket) => bucket.p95Ms);
  const peak = peakOf(slowest);
  const series: ChartSeries[] = [
    {
      name: "p50",
      tone: "accent",
      shape: "line",
      values: buckets.map((bucket) => bucket.p50Ms),
      whole: latency(total.p50Ms),
    },
    { name: "p95", tone: "soft", shape: "dashes", values: slowest, whole: latency(total.p95Ms) },
  ];
  const shape = shapeOf(at, range);
  const { span } = shape;
  const most = peak ? ` Slowest at ${when(at[peak.index], range)}: p95 ${latency(peak.value)}.` : "";
  return {
    ...shape,
    series,
    least: 10,
    isLog: true,
    tick: duration,
    format: latency,
    summary:
      total.p50Ms === null
        ? `${sentence(span)}, no attempt got a response.`
        : `${sentence(span)}, half of the attempts with a response took up to ${latency(total.p50Ms)}, and 95 % up to ${latency(total.p95Ms)}.${most}`,
  };
}

const shapeOf = (at: number[], range: Range) => ({
  ...{ at, bucketMs: range.bucketMs },
  span: `since ${when(at[0], range)}`,
});

const sentence = (span: string): string => span.replace(/^s/, "S");

const when = (ms: number | undefined, { bucketMs, buckets }: Range) =>
  ms === undefined ? "" : moment(ms, bucketMs * buckets >= dayMs);

/** Two digits: the statistics count in steps of a fifth, so more would be made up. */
export const latency = (ms: number | null): string => (ms === null ? "–" : duration(Number(ms.toPrecision(2))));
