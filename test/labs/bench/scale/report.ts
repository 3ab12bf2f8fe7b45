import type { Bar } from "../report.ts";
import type { Window } from "./load.ts";
import type { RescueResult } from "./postgres.ts";
import type { ReadResult, Reads } from "./reads.ts";
import type { EraseResult, ListsResult, ReplayResult, RestartResult, RetentionResult } from "./server-runs.ts";

/** Everything about one size; what was not asked for is missing. */
export interface SizeResult {
  events: number;
  databaseBytes: number;
  reads?: Reads;
  restart?: RestartResult;
  rescue?: RescueResult;
  alone?: Window;
  pages?: ListsResult;
  search?: ListsResult;
  /** Ingestion alone, again: just before the replay and before the deletion. */
  aloneBeforeReplay?: Window;
  replay?: ReplayResult;
  aloneBeforeErase?: Window;
  erase?: EraseResult;
  aloneBeforeRetention?: Window;
  retention?: RetentionResult;
}

const maxFirstPageMs = 3;
const maxDeepPageMs = 150;
const maxEventMs = 2;
const maxIngestionBesidePagesMs = 50;
const maxFailuresMs = 50;
const maxSearchMs = 600;
const maxFirstDeliveryMs = 1_000;
/** "At most doubled". */
const maxSlowdown = 2;
/** What the highest resident memory of the second half may have on that of the first: more is no plateau. */
const maxGrowthBytes = 20e6;

/** The bars hold at every size, and are worth most at the largest. */
export function judge({
  reads,
  restart,
  alone,
  pages,
  search,
  aloneBeforeReplay,
  replay,
  aloneBeforeErase,
  erase,
  aloneBeforeRetention,
  retention,
}: SizeResult): Bar[] {
  const bars: Bar[] = [];
  const add = (name: string, measured: number, limit: number, unit: (value: number) => string) =>
    bars.push({ name, passed: measured <= limit, measured: unit(measured), wanted: `at most ${unit(limit)}` });

  if (reads) {
    add("first page at the store, p99", reads.firstPage.p99Ms, maxFirstPageMs, ms);
    add("first page of 1,000 at the store, p50", reads.firstLongPage.p50Ms, maxFirstPageMs, ms);
    add("deep page of 1,000 at the store, p99", reads.deepPage.p99Ms, maxDeepPageMs, ms);
    // The farthest from both ends.
    add("page of 1,000 in the middle at the store, p50", reads.middlePage.p50Ms, maxDeepPageMs, ms);
    add("one event at the store, p99", reads.oneEvent.p99Ms, maxEventMs, ms);
    add("failure groups of a day at the store, p99", reads.failures.p99Ms, maxFailuresMs, ms);
  }
  if (restart) {
    add("restart to first delivery, slowest", Math.max(...restart.firstDeliveryMs), maxFirstDeliveryMs, ms);
  }
  if (pages) {
    add("p99 of ingestion beside deep pages", pages.window.ingestionP99Ms, maxIngestionBesidePagesMs, ms);
  }
  if (search && alone) {
    add("search over HTTP, p99", search.list.p99Ms, maxSearchMs, ms);
    add("p99 of ingestion beside searches", search.window.ingestionP99Ms, alone.ingestionP99Ms * maxSlowdown, ms);
  }
  const judgeWindow = (what: string, window: Window, alone: Window) => {
    add(`p99 of ingestion beside ${what}`, window.ingestionP99Ms, alone.ingestionP99Ms * maxSlowdown, ms);
    add(`memory growth in the second half of ${what}`, window.peakBytes[1] - window.peakBytes[0], maxGrowthBytes, mb);
  };
  if (replay && aloneBeforeReplay) judgeWindow("the replay", replay.window, aloneBeforeReplay);
  if (erase && aloneBeforeErase) judgeWindow("the deletion", erase.window, aloneBeforeErase);
  if (retention && aloneBeforeRetention) judgeWindow("the retention", retention.window, aloneBeforeRetention);
  return bars;
}

const readLine = ({ name, calls, p50Ms, p99Ms, maxMs }: ReadResult) =>
  `  ${name.padEnd(24)} p50 ${ms(p50Ms).padStart(9)}  p99 ${ms(p99Ms).padStart(9)}  max ${ms(maxMs).padStart(9)}  (${calls} calls)`;

export const readLines = (reads: Reads) => Object.values(reads).map(readLine).join("\n");

export function restartLine({ pending, firstDeliveryMs, drainRate, peakBytes }: RestartResult): string {
  const [first, ...others] = firstDeliveryMs.map(ms);
  return (
    `  restart, ${count(pending)} pending: first delivery after ${others.join(", ")} (killed), ${first} (after an orderly end); ` +
    `then ${drainRate.toFixed(0)} deliveries/s, peak ${mb(peakBytes)}`
  );
}

export const rescueLine = ({ rescuedMs }: RescueResult) =>
  `  rescue                   what a killed server owned was taken over after ${(rescuedMs / 1000).toFixed(1)} s`;

export function windowLine(label: string, window: Window): string {
  const { seconds, accepted, peakBytes } = window;
  return (
    `  ${label.padEnd(24)} ingestion p50 ${ms(window.ingestionP50Ms)} p99 ${ms(window.ingestionP99Ms)} max ${ms(window.ingestionMaxMs)}` +
    ` (${(accepted / seconds).toFixed(0)}/s for ${seconds.toFixed(0)} s), end to end p99 ${ms(window.endToEndP99Ms)}` +
    `\n${indent}server ${window.serverCores.toFixed(2)} cores, generator ${window.generatorCores.toFixed(2)}; ` +
    `resident ${mb(window.residentStartBytes)} at the start, peak ${mb(peakBytes[0])} in the first half, ${mb(peakBytes[1])} in the second`
  );
}

export const listsLine = (label: string, { list, window }: ListsResult) =>
  `${readLine(list)}\n${windowLine(label, window)}`;

const indent = " ".repeat(27);
const progress = (done: number, all: number) => (done === all ? count(all) : `${count(done)} of ${count(all)}`);

export const replayLine = ({ selected, delivered, window }: ReplayResult) =>
  `${windowLine("beside the replay", window)}\n${indent}${progress(delivered, selected)} events delivered again, ${(delivered / window.seconds).toFixed(0)}/s`;

export const eraseLine = ({ events, erased, erasedSeconds, window }: EraseResult) =>
  `${windowLine("beside the deletion", window)}\n${indent}${progress(erased, events)} events erased in ${erasedSeconds.toFixed(0)} s ` +
  `(${(erased / erasedSeconds).toFixed(0)}/s), the file cut after ${window.seconds.toFixed(0)} s`;

export const count = (value: number) => value.toLocaleString("en-GB");
export const ms = (value: number) => `${value.toFixed(value < 10 ? 2 : value < 100 ? 1 : 0)} ms`;
export const mb = (bytes: number) => `${(bytes / 1e6).toFixed(0)} MB`;

export const retentionLine = ({ events, gone, goneSeconds, bytesBefore, bytesAfter, window }: RetentionResult) =>
  `${windowLine("beside the retention", window)}\n${indent}${progress(gone, events)} events gone in ${goneSeconds.toFixed(0)} s ` +
  `(${(gone / goneSeconds).toFixed(0)}/s), the file cut from ${(bytesBefore / 1e9).toFixed(2)} to ${(bytesAfter / 1e9).toFixed(2)} GB ` +
  `after ${window.seconds.toFixed(0)} s`;
