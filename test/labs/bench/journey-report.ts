import { createStyle } from "../../../src/cli/style.ts";
import { formatTable } from "../../../src/cli/table.ts";
import { median } from "./histogram.ts";
import type { VariantName } from "./journey-variants.ts";
import type { PhaseResult } from "./phase.ts";
import type { ThreadUse } from "./threads.ts";

/** What takes events: the floor, or the program with some of its stages. */
export type SubjectName = "listener" | VariantName;

/** Processor time of an event, µs, by the thread that took it. */
export interface Costs {
  /** Accepted events a second. */
  readonly rate: number;
  readonly all: number;
  readonly storing: number;
  readonly sending: number;
  readonly log: number;
  readonly rest: number;
}

/**
 * The system has our threads without what they are for, in the order of their starts: the program's first one stores, the
 * first Worker reads and copies the log back, the second one sends.
 * @param workers as many as there have to be: with another number the order says nothing
 */
export function costsOf({ acceptedRate }: PhaseResult, threads: readonly ThreadUse[], workers: number): Costs {
  const us = (of: readonly ThreadUse[]) => (of.reduce((sum, { cores }) => sum + cores, 0) * 1e6) / acceptedRate;
  const found = threads.filter(({ name }) => /^Worker\b/.test(name));
  if (found.length !== workers) throw new Error(`The server has ${found.length} Workers and not ${workers}.`);
  const [all, storing] = [us(threads), us(threads.slice(0, 1))];
  const [log, sending] = [us(found.slice(0, 1)), us(found.slice(1))];
  return { rate: acceptedRate, all, storing, sending, log, rest: all - storing - log - sending };
}

/** Of the rounds of one subject, each figure by itself. */
export function medianOf(rounds: readonly Costs[]): Costs {
  const of = (field: keyof Costs) => median(rounds.map((costs) => costs[field]));
  return {
    rate: of("rate"),
    all: of("all"),
    storing: of("storing"),
    sending: of("sending"),
    log: of("log"),
    rest: of("rest"),
  };
}

const takenOut: Readonly<Record<SubjectName, string>> = {
  listener: "all but a listener that passes bodies on",
  all: "nothing",
  "no-settling": "settling",
  "no-storing": "deciding and storing, settling",
  "no-deliveries": "all that follows the 202",
  "only-http": "deciding and storing, all that follows the 202",
};

export type JourneyCosts = Readonly<Record<SubjectName, Costs>>;

export function variantTable(costs: JourneyCosts): string {
  const head = ["variant", "events/s", "µs an event", "storing", "sending", "log", "the rest", "taken out"];
  const rows = (Object.keys(takenOut) as SubjectName[]).map((name) => {
    const { rate, all, storing, sending, log, rest } = costs[name];
    return [
      name,
      rate.toFixed(0).padStart(8),
      ...figures(head.slice(2), [all, storing, sending, log, rest]),
      takenOut[name],
    ];
  });
  return [
    table(head, rows),
    "storing: the main thread; sending: the second Worker; log: the first one, which copies the log back; the rest: garbage",
    "collection, compiling and what else the runtime has threads for",
  ].join("\n");
}

/** A part of an event's time; what is part of another one does not count again. */
export interface Stage {
  readonly name: string;
  readonly us: number;
  readonly isPart?: boolean;
}

/**
 * Differences between variants: each is what a stage costs where the others are as they are, so they need not add up, and what
 * they leave over is a line of its own.
 * @param signingUs of one delivery
 */
export function stagesOf(costs: JourneyCosts, signingUs: number): Stage[] {
  const { listener, all } = costs;
  const onlyHttp = costs["only-http"];
  const noStoring = costs["no-storing"];
  const stages: Stage[] = [
    { name: "listener and sockets, the floor", us: listener.all },
    { name: "HTTP in beyond it: judge, read, slice, answer", us: onlyHttp.all - listener.all },
    { name: "accepting: decide and store", us: costs["no-deliveries"].all - onlyHttp.all },
    { name: "dispatch, sign, send", us: noStoring.all - onlyHttp.all },
    { name: "  of it two Ed25519 signatures and an HMAC", us: signingUs, isPart: true },
    { name: "  of it the thread that sends, these included", us: noStoring.sending, isPart: true },
    { name: "settling", us: all.all - costs["no-settling"].all },
  ];
  return [...stages, { name: "left over", us: all.all - sumOf(stages) }];
}

const sumOf = (stages: readonly Stage[]): number => stages.reduce((sum, { us, isPart }) => sum + (isPart ? 0 : us), 0);

export function stageTable(stages: readonly Stage[]): string {
  const whole = sumOf(stages);
  const head = ["stage", "µs an event", "share"];
  const rows = [...stages, { name: "all", us: whole }].map(({ name, us }) => [
    name,
    ...figures(head.slice(1), [us]),
    `${((us / whole) * 100).toFixed(0)} %`.padStart(5),
  ]);
  return [table(head, rows), "left over: what the stages cost each other by being there together, and noise"].join(
    "\n",
  );
}

/** As wide as their titles, for their points to stand below each other. */
const figures = (titles: readonly string[], values: readonly number[]): string[] =>
  values.map((value, column) => value.toFixed(1).padStart(titles[column]?.length ?? 0));

const table = (head: readonly string[], rows: readonly (readonly string[])[]): string =>
  formatTable(head, rows, createStyle({ isTerminal: process.stdout.isTTY === true, env: process.env }));
