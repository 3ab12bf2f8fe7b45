import { ms } from "../bench/report.ts";
import type { HostileResult } from "./run.ts";
import { attemptMs } from "./verdicts.ts";

/** Megabytes of 10^6 bytes, the stricter reading. */
const maxGrowthBytes = 20e6;
/** Between two events that are to be 50 ms apart. */
const longPauseMs = 1_000;
/** A busy receiver sees a connection end a little later than the server ends it. */
const maxConnectionLateMs = 500;
const mb = (bytes: number) => `${(bytes / 1e6).toFixed(1)} MB`;

export interface Bar {
  readonly name: string;
  readonly passed: boolean;
  readonly measured: string;
}

/** What depends on the machine. */
export interface Allowance {
  /** By how much the peak of the server's memory may grow. */
  readonly growthBytes: number;
  /** How late a timer may fire. */
  readonly lateMs: number;
}

/** Of a machine that does nothing else. */
export const idleMachine: Allowance = { growthBytes: maxGrowthBytes, lateMs: 500 };

/** What has to hold, each with what was measured. */
export function judge(result: HostileResult, times: number, { growthBytes, lateMs }: Allowance): Bar[] {
  const { tallies, healthy, hostilePeakBytes, warmPeakBytes } = result;
  const faults = tallies.flatMap((tally) => tally.faults);
  const rarest = Math.min(...tallies.map((tally) => tally.times));
  const longest = Math.max(...tallies.map((tally) => tally.longestMs));
  // Kept connections to quick ones live longer, and whoever does not read does not see the end.
  const watching = tallies.filter(
    ({ group, title }) => group === "slow" && !title.startsWith("TLS handshake never begins"),
  );
  const connection = Math.max(0, ...watching.map((tally) => tally.connectionMs));
  const growth = hostilePeakBytes - warmPeakBytes;
  return [
    { name: "the server is alive and serves", passed: result.isAlive, measured: result.isAlive ? "yes" : "no" },
    { name: `each receiver was tried ${times} times`, passed: rarest >= times, measured: `${rarest} at least` },
    {
      name: "each attempt has its verdict and reason",
      passed: faults.length === 0,
      measured: `${faults.length} have not`,
    },
    {
      name: `each attempt ended within ${ms(attemptMs + lateMs)}`,
      passed: longest <= attemptMs + lateMs,
      measured: `${ms(longest)} at most`,
    },
    {
      name: "each connection too, as its receiver saw it",
      passed: connection <= attemptMs + lateMs + maxConnectionLateMs,
      measured: `${ms(connection)} at most`,
    },
    {
      name: "no connection is left open",
      passed: result.descriptorsLeft <= 0,
      measured: `${Math.max(0, result.descriptorsLeft)} descriptors more than before`,
    },
    {
      name: `peak of resident memory grew by less than ${mb(growthBytes)}`,
      passed: growth < growthBytes,
      measured: `${mb(growth)}, from ${mb(warmPeakBytes)} to ${mb(hostilePeakBytes)}`,
    },
    {
      name: "the healthy webhook got everything",
      passed: healthy.received === healthy.sent,
      measured: `${healthy.received} of ${healthy.sent}`,
    },
  ];
}

export const barLine = ({ name, passed, measured }: Bar) => `${passed ? "PASS" : "FAIL"}  ${name}: ${measured}`;

/** One line for each receiver. */
export function tallyLines({ tallies, leftOut }: HostileResult): string {
  const width = Math.max(...tallies.map(({ title }) => title.length));
  const lines = tallies.map(
    ({ title, wanted, times, longestMs, connectionMs, faults }) =>
      `${title.padEnd(width)}  ${wanted.padEnd(12)}  ${String(times).padStart(5)} times  ${ms(longestMs).padStart(9)} at most, connection ${ms(connectionMs).padStart(9)}${faults.length > 0 ? `  ${faults.length} WRONG` : ""}`,
  );
  const first = tallies.flatMap(({ faults }) => faults.slice(0, 2));
  return [...lines, ...leftOut.map((name) => `left out: ${name}`), ...first].join("\n");
}

export function loadLines(result: HostileResult): string {
  const { webhooks, tallies, turns, attempts, seconds, healthy, healthyBefore } = result;
  const { longestPauseMs } = healthy;
  return [
    ...(longestPauseMs > longPauseMs
      ? [`NOTE: this process, too, stood still for ${ms(longestPauseMs)}: times are not clean.`]
      : []),
    `load      ${attempts} attempts to ${webhooks} webhooks of ${tallies.length} hostile receivers, in ${turns} turns, ${seconds.toFixed(0)} s; 20 events/s to a healthy webhook beside them`,
    `memory    ${mb(result.restingBytes)} after the warm-up (peak ${mb(result.warmPeakBytes)}), peak ${mb(result.hostilePeakBytes)} under the hostile receivers`,
    `healthy   p50 ${ms(healthy.p50Ms)} p99 ${ms(healthy.p99Ms)} at most ${ms(healthy.maxMs)}; during the warm-up p50 ${ms(healthyBefore.p50Ms)} p99 ${ms(healthyBefore.p99Ms)}`,
  ].join("\n");
}
