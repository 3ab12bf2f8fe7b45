import type { PhaseResult } from "../../bench/phase.ts";
import type { Bar } from "../../bench/report.ts";
import type { Attack } from "./attack.ts";
import type { LoginTiming } from "./login-timing.ts";
import type { Tally } from "./target.ts";

export interface AttackResult {
  readonly attack: Attack;
  readonly seconds: number;
  readonly alone: PhaseResult;
  readonly beside: PhaseResult;
  readonly tally: Tally;
  readonly residentBefore: number;
  readonly residentPeak: number;
  readonly diskGrowth: number;
  /** The server answered a request of the healthy tenant's after the attack. */
  readonly recoveredMs: number;
}

/** What a person does not feel; a machine that is slow of itself may double its own figure. */
const maxP99Ms = 250;
const maxP99Ratio = 2;
const maxTimingShare = 0.05;
/** Two minutes are what a client waits at most; this is a server that was under attack a moment ago. */
const maxRecoveryMs = 1_000;

export function judgeAttack(result: AttackResult): Bar[] {
  const { attack, alone, beside, tally, residentBefore, residentPeak, diskGrowth, recoveredMs } = result;
  const limitMs = Math.max(maxP99Ms, alone.endToEndP99Ms * maxP99Ratio);
  const { lost, wrong, refused } = beside;
  const strange = Object.keys(tally).filter((what) => !attack.expected.map(String).includes(what) && tally[what] !== 0);
  const growth = residentPeak - residentBefore;
  const maxIngestionMs = Math.max(attack.ingestionP99Ms ?? 0, alone.ingestionP99Ms * maxP99Ratio);
  const ingestion: Bar = {
    name: `${attack.name}: p99 of the healthy tenant's requests`,
    passed: beside.ingestionP99Ms < maxIngestionMs,
    measured: ms(beside.ingestionP99Ms),
    wanted: `under ${attack.ingestionP99Ms} ms or twice ${ms(alone.ingestionP99Ms)}`,
  };
  return [
    ...(attack.ingestionP99Ms === undefined ? [] : [ingestion]),
    {
      name: `${attack.name}: p99 of the healthy tenant's deliveries`,
      passed: beside.endToEndP99Ms < limitMs,
      measured: ms(beside.endToEndP99Ms),
      wanted: `under ${maxP99Ms} ms or twice ${ms(alone.endToEndP99Ms)}`,
    },
    {
      name: `${attack.name}: the healthy tenant's events`,
      passed: lost + wrong + refused === 0 && beside.accepted > 0,
      measured: `${beside.accepted} accepted, ${refused} refused, ${lost} lost, ${wrong} wrong`,
      wanted: "all accepted and delivered",
    },
    {
      name: `${attack.name}: growth of resident memory at its peak`,
      passed: growth < attack.growthBytes,
      measured: mb(growth),
      wanted: `under ${mb(attack.growthBytes)}: ${attack.growthReason}`,
    },
    ...(attack.diskBytes === undefined
      ? []
      : [
          {
            name: `${attack.name}: growth of the data directory`,
            passed: diskGrowth < attack.diskBytes,
            measured: mb(diskGrowth),
            wanted: `under ${mb(attack.diskBytes)}: ${attack.diskReason}`,
          },
        ]),
    {
      name: `${attack.name}: answers`,
      passed: strange.length === 0 && Object.keys(tally).length > 0,
      measured: strange.length === 0 ? "as expected" : `also ${strange.join(", ")}`,
      wanted: `only ${attack.expected.join(", ")}`,
    },
    {
      name: `${attack.name}: first delivery after it`,
      passed: recoveredMs < maxRecoveryMs,
      measured: ms(recoveredMs),
      wanted: `within ${maxRecoveryMs} ms`,
    },
  ];
}

export const judgeTiming = ({ ids, from, to, difference }: LoginTiming): Bar => ({
  name: `login with unknown ${ids}: difference to known ones`,
  passed: Math.max(Math.abs(from), Math.abs(to)) < maxTimingShare,
  measured: `${share(difference)} (95 % interval ${share(from)} to ${share(to)})`,
  wanted: `interval within ±${maxTimingShare * 100} %`,
});

const indent = " ".repeat(10);

export function attackLines({
  attack,
  seconds,
  alone,
  beside,
  tally,
  residentBefore,
  residentPeak,
}: AttackResult): string {
  const answers = Object.entries(tally)
    .filter(([, times]) => times > 0)
    .map(([what, times]) => `${what} × ${times.toLocaleString("en-GB")}`);
  return [
    `\n${attack.name}  ${attack.load}`,
    `${indent}${seconds.toFixed(0)} s, answers: ${answers.join(", ") || "none"}`,
    `${indent}healthy tenant (20 events/s) end to end: alone p50 ${ms(alone.endToEndP50Ms)} p99 ${ms(alone.endToEndP99Ms)}, beside p50 ${ms(beside.endToEndP50Ms)} p99 ${ms(beside.endToEndP99Ms)}`,
    `${indent}its requests: alone p99 ${ms(alone.ingestionP99Ms)}, beside p99 ${ms(beside.ingestionP99Ms)}`,
    `${indent}resident ${mb(residentBefore)} before, ${mb(residentPeak)} at its peak; server ${beside.serverCores.toFixed(2)} cores, others with the attacker ${beside.otherCores.toFixed(2)}`,
  ].join("\n");
}

export const timingLine = ({ ids, pairs, knownMs, unknownMs, difference }: LoginTiming): string =>
  `\nlogin-timing  ${ids}: ${pairs} pairs of wrong passwords, median known ${ms(knownMs)}, unknown ${ms(unknownMs)}, difference ${share(difference)}`;

const ms = (value: number) => `${value.toFixed(value < 10 ? 2 : 1)} ms`;
const mb = (bytes: number) => `${(bytes / 1e6).toFixed(0)} MB`;
const share = (value: number) => `${value >= 0 ? "+" : ""}${(value * 100).toFixed(2)} %`;
