import { median } from "./histogram.ts";
import type { PhaseResult } from "./phase.ts";
import { type Bar, bar, mb, ms } from "./report.ts";

export interface HealthyRun {
  steady: PhaseResult;
  full: PhaseResult;
  peakBytes: number;
  /** Most attempts under way at once. */
  inFlight: number;
}

export interface DeadPair {
  without: HealthyRun;
  beside: HealthyRun;
}

export interface Greedy {
  mode: "single" | "batch";
  alone: PhaseResult;
  beside: PhaseResult;
  accepted: number;
  acceptedRate: number;
  /** Of the greedy tenant's events, those that were refused or came other than they were sent. */
  faults: number;
  peakBytes: number;
}

/** Whichever is larger. */
const maxDelayShare = 0.1;
const maxDelayMs = 5;
const maxThroughputLoss = 0.2;
const maxSmallP99Ms = 50;
/** Attempts are young for a quarter of a second, and a crowd may need two waves of them to be known as silent. */
const maxOutageP99Ms = 1_000;

export const deadLine = (label: string, { steady, full, peakBytes, inFlight }: HealthyRun): string =>
  [
    `${label.padEnd(10)} steady: 202→arrival p50 ${ms(steady.delayP50Ms)} p99 ${ms(steady.delayP99Ms)} max ${ms(steady.delayMaxMs)}`,
    `due→arrival p50 ${ms(steady.endToEndP50Ms)} p99 ${ms(steady.endToEndP99Ms)}`,
    `full speed: ${full.rate.toFixed(0)}/s`,
    `in flight ≤ ${inFlight}`,
    `peak ${mb(peakBytes)}`,
    `others ${steady.otherCores.toFixed(2)} cores`,
  ].join(", ");

export const outageLine = ({ rate, ingestionP99Ms, endToEndP50Ms, endToEndP99Ms, delayMaxMs }: PhaseResult): string =>
  `\noutage: ${rate.toFixed(0)}/s delivered, acceptance p99 ${ms(ingestionP99Ms)}, due→arrival p50 ${ms(endToEndP50Ms)} p99 ${ms(endToEndP99Ms)}, 202→arrival max ${ms(delayMaxMs)}`;

export function greedyLine({ mode, alone, beside, accepted, acceptedRate, peakBytes }: Greedy): string {
  const of = (run: PhaseResult) =>
    `acceptance p50 ${ms(run.ingestionP50Ms)} p99 ${ms(run.ingestionP99Ms)}, 202→arrival p99 ${ms(run.delayP99Ms)}, due→arrival p99 ${ms(run.endToEndP99Ms)}`;
  return [
    "",
    `greedy neighbour, ${mode}: ${accepted} events accepted, ${acceptedRate.toFixed(0)}/s, server's peak ${mb(peakBytes)}`,
    `  small one alone   ${of(alone)}`,
    `  small one beside  ${of(beside)} (${beside.accepted} events in all)`,
  ].join("\n");
}

export function judgeFairness(
  pairs: readonly DeadPair[],
  outage: PhaseResult | null,
  greedy: readonly Greedy[],
): Bar[] {
  return [...judgeDead(pairs), ...(outage ? judgeOutage(outage) : []), ...greedy.flatMap(judgeGreedy)];
}

function judgeDead(pairs: readonly DeadPair[]): Bar[] {
  if (pairs.length === 0) return [];
  const runs = pairs.flatMap(({ without, beside }) => [without.steady, without.full, beside.steady, beside.full]);
  const least = Math.min(...pairs.map(({ beside }) => beside.inFlight));
  const kept = median(pairs.map(({ without, beside }) => beside.full.rate / without.full.rate));
  return [
    delayBar(pairs, "delayP99Ms", "p99 from the 202 to the arrival"),
    delayBar(pairs, "endToEndP99Ms", "p99 from when it was due to the arrival"),
    bar(
      "throughput beside dead webhooks",
      kept > 1 - maxThroughputLoss,
      `${(kept * 100).toFixed(1)} % of that without them`,
      `above ${(1 - maxThroughputLoss) * 100} %`,
    ),
    bar("attempts that hang at once", least >= 1_000, `${least} or more in each run`, "at least 1000"),
    faultBar("the healthy tenant's events", runs),
  ];
}

/** The median of the differences of the pairs, against a share of the median without neighbours. */
function delayBar(pairs: readonly DeadPair[], field: "delayP99Ms" | "endToEndP99Ms", name: string): Bar {
  const without = median(pairs.map((pair) => pair.without.steady[field]));
  const beside = median(pairs.map((pair) => pair.beside.steady[field]));
  const change = median(pairs.map((pair) => pair.beside.steady[field] - pair.without.steady[field]));
  const allowed = Math.max(maxDelayMs, without * maxDelayShare);
  return bar(
    `${name} beside dead webhooks`,
    change < allowed,
    `${change < 0 ? "" : "+"}${ms(change)} (${ms(without)} without, ${ms(beside)} with)`,
    `less than +${ms(allowed)}`,
  );
}

const judgeOutage = (run: PhaseResult): Bar[] => [
  bar(
    "p99 from when it was due to the arrival, as 1,000 webhooks begin to hang",
    run.endToEndP99Ms < maxOutageP99Ms,
    ms(run.endToEndP99Ms),
    `under ${maxOutageP99Ms} ms`,
  ),
  faultBar("events beside those that begin to hang", [run]),
];

function judgeGreedy({ mode, beside, faults }: Greedy): Bar[] {
  const fields = [
    ["ingestionP99Ms", "acceptance"],
    ["delayP99Ms", "202 to arrival"],
    ["endToEndP99Ms", "due to arrival"],
  ] as const;
  return [
    ...fields.map(([field, name]) =>
      bar(
        `p99 of the small tenant beside ${mode === "single" ? "single events" : "batches"}, ${name}`,
        beside[field] < maxSmallP99Ms,
        ms(beside[field]),
        `under ${maxSmallP99Ms} ms`,
      ),
    ),
    faultBar(`the small tenant's events (${mode})`, [beside]),
    bar(`the greedy tenant's events (${mode})`, faults === 0, `${faults} refused or wrong`, "none"),
  ];
}

function faultBar(name: string, runs: readonly PhaseResult[]): Bar {
  const faults = runs.reduce((sum, { lost, wrong, refused }) => sum + lost + wrong + refused, 0);
  return bar(name, faults === 0, `${faults} lost, refused or wrong`, "none");
}
