import type { PhaseResult } from "./phase.ts";
import { type Bar, bar, mb, ms, phaseLine, warnings } from "./report.ts";

export interface HttpsResult extends PhaseResult {
  /** Processor seconds of the receivers' process for each second. */
  receiverCores: number;
  /** Attempts in the measured time that went out on a kept connection, and on a new one; the server's own count. */
  kept: number;
  fresh: number;
  /** Of the server process since its start. */
  peakBytes: number;
}

/** The lower of the two counts. */
const minRate = 7_000;
const minShareOfBare = 0.7;
/** At 80 % of what it delivers at most. */
const maxEndToEndMs = 500;
const minKeptShare = 0.95;

/** NaN when nothing went out, which meets no bar. */
const keptShareOf = ({ kept, fresh }: HttpsResult) => kept / (kept + fresh);

export function httpsLines(result: HttpsResult): string {
  const { receiverCores, kept, fresh, otherCores, peakBytes } = result;
  // A phase knows two processes; the third is not "others".
  const run = { ...result, otherCores: Math.max(0, otherCores - receiverCores) };
  const indent = " ".repeat(16);
  return [
    phaseLine("https", run),
    `${indent}receivers ${receiverCores.toFixed(2)} cores, server's peak since its start ${mb(peakBytes)}`,
    `${indent}connections: ${kept} attempts on kept ones, ${fresh} on new ones`,
    ...warnings({ bare: [], full: [run], half: undefined }),
  ].join("\n");
}

/** Judged by the full number, not by its rounded form. */
export function judgeHttps(result: HttpsResult, bare: PhaseResult, most: PhaseResult): Bar[] {
  const { rate, lost, wrong, refused } = result;
  const enough = Math.min(minRate, minShareOfBare * bare.rate);
  const share = `${rate.toFixed(0)}, ${(rate / bare.rate).toFixed(2)} of the bare relay's`;
  const p99 = most.endToEndP99Ms;
  const keptShare = keptShareOf(result);
  return [
    bar("deliveries a second", rate >= enough, share, `at least ${enough.toFixed(0)}`),
    bar("end to end p99 at 80 % of it", p99 < maxEndToEndMs, ms(p99), `under ${maxEndToEndMs} ms`),
    bar(
      "attempts on a kept connection",
      keptShare > minKeptShare,
      `${(keptShare * 100).toFixed(2)} %`,
      `above ${minKeptShare * 100} %`,
    ),
    bar(
      "every event accepted, delivered, unchanged, to its host",
      lost + wrong + refused === 0,
      `${refused} refused, ${lost} lost, ${wrong} wrong`,
      "none",
    ),
  ];
}

const counter = (connection: string) =>
  new RegExp(`^postrider_delivery_connections_total\\{connection="${connection}"\\} (\\d+)$`, "m");

/** Reads the counts from the text of `/metrics`; a counter that has not counted is not in it. */
export function readConnections(metrics: string): { kept: number; fresh: number } {
  return {
    kept: Number(counter("reused").exec(metrics)?.[1] ?? 0),
    fresh: Number(counter("new").exec(metrics)?.[1] ?? 0),
  };
}
