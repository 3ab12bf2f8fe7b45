import { median } from "./histogram.ts";
import type { Surroundings } from "./machine.ts";
import type { PhaseResult } from "./phase.ts";

export interface HalfLoad extends PhaseResult {
  targetRate: number;
}

export interface Results extends Surroundings {
  ceiling: PhaseResult;
  bare: PhaseResult[];
  full: PhaseResult[];
  half: HalfLoad | undefined;
  /** Of the server process over everything. */
  peakBytes: number | undefined;
  streamMessages: number;
  streamFailure: string | undefined;
}

/** What is asked for, with what was measured. */
export interface Bar {
  name: string;
  passed: boolean;
  measured: string;
  wanted: string;
}

const minRatio = 0.55;
const maxCost = 2.8;
const maxHalfLoadP99Ms = 12;
const maxHalfLoadBytes = 200e6;
const maxPeakBytes = 300e6;
/** Above this share of one core the load generator may be what limits the rate. */
const generatorLimitCores = 0.95;
/** The kernel's part of loopback and disk is below. */
const maxOtherCores = 0.25;

/** The median over the pairs: the two runs of a pair had the same machine, whatever else it did meanwhile. */
export const ratioOf = ({ bare, full }: Results): number =>
  median(full.map(({ rate }, pair) => rate / (bare[pair]?.rate ?? Number.NaN)));

/** Processor time of an event beside the relay's, of each pair. */
const costOf = ({ bare, full }: Results): number =>
  median(full.map(({ serverUsPerEvent }, pair) => serverUsPerEvent / (bare[pair]?.serverUsPerEvent ?? Number.NaN)));

/** Judged by the full number, not by its rounded form. */
export function judgeBars(results: Results): Bar[] {
  const { half, full, peakBytes, streamFailure } = results;
  if (half === undefined || peakBytes === undefined) return [];
  const runs = [...full, half];
  const sum = (field: "lost" | "wrong" | "refused") => runs.reduce((total, run) => total + run[field], 0);
  const faults = sum("lost") + sum("wrong") + sum("refused");
  return [
    bar("ratio", ratioOf(results) >= minRatio, ratioOf(results).toFixed(3), `at least ${minRatio}`),
    bar("processor time of an event", costOf(results) <= maxCost, costOf(results).toFixed(2), `at most ${maxCost}`),
    bar(
      "p99 of ingestion at half load",
      half.ingestionP99Ms < maxHalfLoadP99Ms,
      ms(half.ingestionP99Ms),
      `under ${maxHalfLoadP99Ms} ms`,
    ),
    bar(
      `resident memory after ${half.seconds.toFixed(0)} s at half load`,
      half.residentEndBytes < maxHalfLoadBytes,
      mb(half.residentEndBytes),
      `under ${mb(maxHalfLoadBytes)}`,
    ),
    bar("resident memory at its peak", peakBytes < maxPeakBytes, mb(peakBytes), `under ${mb(maxPeakBytes)}`),
    bar(
      "every event accepted, delivered, unchanged, shown",
      faults === 0 && streamFailure === undefined,
      `${sum("refused")} refused, ${sum("lost")} lost, ${sum("wrong")} wrong, stream ${streamFailure ?? "open"}`,
      "none",
    ),
  ];
}

export const bar = (name: string, passed: boolean, measured: string, wanted: string): Bar => ({
  name,
  passed,
  measured,
  wanted,
});

export const barLine = ({ name, passed, measured, wanted }: Bar) =>
  `${passed ? "PASS" : "FAIL"}  ${name}: ${measured} (${wanted})`;

const indent = " ".repeat(16);

/** One run: rate and latencies, processors and memory, counts. */
export function phaseLine(label: string, run: PhaseResult): string {
  const cores = [
    `server ${run.serverCores.toFixed(2)} cores (${run.serverCpuSeconds.toFixed(1)} s, ${run.serverUsPerEvent.toFixed(0)} µs an event)`,
    `generator ${run.generatorCores.toFixed(2)}, others ${run.otherCores.toFixed(2)}`,
    `resident ${mb(run.residentEndBytes)} (peak ${mb(run.residentPeakBytes)})`,
  ];
  const counts = `accepted ${run.accepted}, lost ${run.lost}, duplicates ${run.duplicates}, wrong ${run.wrong}, refused ${run.refused}`;
  return [
    `${label.padEnd(14)}${run.rate.toFixed(0).padStart(6)}/s  ingestion p50 ${ms(run.ingestionP50Ms)} p99 ${ms(run.ingestionP99Ms)}`,
    `  end to end p50 ${ms(run.endToEndP50Ms)} p99 ${ms(run.endToEndP99Ms)}`,
    `\n${indent}${cores.join(", ")}\n${indent}${counts}`,
  ].join("");
}

export function summary(results: Results): string {
  const { bare, full, half, ceiling, peakBytes, streamMessages } = results;
  const of = (runs: readonly PhaseResult[], field: "rate" | "ingestionP50Ms" | "ingestionP99Ms") =>
    median(runs.map((run) => run[field]));
  const endToEnd = (runs: readonly PhaseResult[]) =>
    `p50 ${ms(median(runs.map((run) => run.endToEndP50Ms)))} p99 ${ms(median(runs.map((run) => run.endToEndP99Ms)))}`;
  const lines = ["", `bare relay  ${of(bare, "rate").toFixed(0)} events/s (median of ${bare.length})`];
  if (full.length > 0) {
    lines.push(`postrider   ${of(full, "rate").toFixed(0)} events/s (median of ${full.length})`);
    lines.push(`ratio ${ratioOf(results).toFixed(2)}, processor time of an event ${costOf(results).toFixed(2)}`);
    lines.push(`ingestion at full load   p50 ${ms(of(full, "ingestionP50Ms"))} p99 ${ms(of(full, "ingestionP99Ms"))}`);
    lines.push(`end to end at full load  ${endToEnd(full)}`);
  }
  if (half !== undefined) {
    lines.push(
      `ingestion at half load   p50 ${ms(half.ingestionP50Ms)} p99 ${ms(half.ingestionP99Ms)} (${half.targetRate.toFixed(0)} events/s, counted from when each was due)`,
    );
    lines.push(`end to end at half load  ${endToEnd([half])}`);
    lines.push(
      `resident memory          ${mb(half.residentEndBytes)} after half load, ${mb(peakBytes ?? 0)} at its peak`,
    );
    lines.push(`stream                   ${streamMessages} messages`);
  }
  lines.push(`generator and receiver   ${ceiling.rate.toFixed(0)} events/s against a trivial server`);
  return lines.join("\n");
}

/** What makes the figures worth less: the load generator was the limit, or the machine was not ours alone. */
export function warnings({ bare, full, half }: Pick<Results, "bare" | "full" | "half">): string[] {
  const runs = half === undefined ? [...bare, ...full] : [...bare, ...full, half];
  const busiest = Math.max(...runs.map(({ generatorCores }) => generatorCores));
  const others = Math.max(...runs.map(({ otherCores }) => otherCores));
  const found: string[] = [];
  if (busiest > generatorLimitCores) {
    found.push(`NOTE: load generator and receiver used ${busiest.toFixed(2)} of one core: they may be the limit.`);
  }
  if (others > maxOtherCores) {
    found.push(`NOTE: other programs used up to ${others.toFixed(2)} cores during a run: the figures are not clean.`);
  }
  return found;
}

export function machineLines({ machine, fileSystem, fsync }: Surroundings): string {
  return [
    `hardware  ${machine.hardware}`,
    `versions  ${machine.versions}`,
    `data      ${fileSystem}`,
    `fsync     p50 ${ms(fsync.p50Ms)} p99 ${ms(fsync.p99Ms)} (200 × 4 KiB)`,
    `before    ${machine.busyBefore}`,
  ].join("\n");
}

export const ms = (value: number) => `${value.toFixed(value < 10 ? 2 : 1)} ms`;
/** Megabytes of 10^6 bytes, the stricter reading of the bars. */
export const mb = (bytes: number) => `${(bytes / 1e6).toFixed(0)} MB`;
