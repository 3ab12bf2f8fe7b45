import { median } from "../histogram.ts";
import { type Bar, bar, ms } from "../report.ts";
import type { Run } from "./cluster.ts";
import { prototypeUs } from "./sheet.ts";

/** What was asked for; each list in the order of the rounds. */
export interface Results {
  /** Of one node, of two, of three. */
  ratio?: readonly MeasuredRun[][];
  sqlite?: { sqlite: Run[]; postgres: Run[] };
  /** With no limit on the node, and with that of the ratio: it is most of what that can do. */
  latency?: { free: Run[]; limited: Run[] };
  horizon?: Horizon;
}

/** With what the bare statements cost the server at its rate and with its batches, in µs for an event. */
export interface MeasuredRun extends Run {
  readonly yardstickUs: number;
}

export interface Horizon {
  /** At full speed. */
  before: Run[];
  /** At 800 events a second, while the transaction is open. */
  during: Run;
  /** At full speed, while it is still open. */
  pinned: Run[];
  /** What the metrics say of it then, in seconds. */
  namedSeconds: number;
  heldSeconds: number;
}

const minRatios = [1, 1.7, 2.4] as const;
/** Of what the bare statements cost the database, measured beside, and of what the prototype did on another machine. */
const maxOver = 1.5;
const minOfSqlite = 0.6;
const maxLatencyMs = 15;
const minPinned = 0.9;

/** Of the rounds: the runs of one had the same machine, whatever else that did meanwhile. */
const ratioOf = (these: readonly Run[], those: readonly Run[]): number =>
  median(these.map(({ rate }, round) => rate / (those[round]?.rate ?? Number.NaN)));

const over = (runs: readonly MeasuredRun[], usOf: (run: MeasuredRun) => number): number =>
  median(runs.map((run) => run.databaseUs / usOf(run)));

const measures = [
  { of: "that of the bare statements", usOf: ({ yardstickUs }: MeasuredRun) => yardstickUs },
  { of: "the prototype's on its own machine, at the same batch", usOf: ({ batch }: MeasuredRun) => prototypeUs(batch) },
];

export function judge(results: Results): Bar[] {
  const { ratio, sqlite, latency, horizon } = results;
  const bars: Bar[] = [];
  const atLeast = (name: string, measured: number, wanted: number, digits = 2) =>
    bars.push(bar(name, measured >= wanted, measured.toFixed(digits), `at least ${wanted}`));
  const [one = []] = ratio ?? [];
  ratio?.forEach((runs, i) => {
    if (i > 0) atLeast(`${i + 1} nodes beside one`, ratioOf(runs, one), minRatios[i] ?? Number.NaN);
  });
  for (const { of, usOf } of measures) {
    ratio?.forEach((runs, i) => {
      const name = `the database's processor time for an event, ${i + 1} nodes, beside ${of}`;
      const times = over(runs, usOf);
      bars.push(bar(name, times <= maxOver, times.toFixed(2), `at most ${maxOver}`));
    });
  }
  if (sqlite) atLeast("PostgreSQL beside SQLite", ratioOf(sqlite.postgres, sqlite.sqlite), minOfSqlite);
  const under = (name: string, runs: readonly Run[]) => {
    const p99 = median(runs.map(({ endToEndP99Ms }) => endToEndP99Ms));
    bars.push(bar(`end to end p99 at 200/s, ${name}`, p99 < maxLatencyMs, ms(p99), `under ${maxLatencyMs} ms`));
  };
  if (latency) {
    under("one node with no limit", latency.free);
    under("one node of the ratio", latency.limited);
  }
  if (horizon) {
    const { before, pinned, namedSeconds, heldSeconds } = horizon;
    atLeast("throughput with a transaction held open, beside that before", ratioOf(pinned, before), minPinned);
    const isNamed = namedSeconds > heldSeconds * minPinned;
    bars.push(bar("its age in the metrics", isNamed, `${namedSeconds.toFixed(0)} s`, `${heldSeconds.toFixed(0)} s`));
  }
  const runs = runsOf(results);
  const sum = (field: "lost" | "wrong" | "refused") => runs.reduce((total, run) => total + run[field], 0);
  const faults = sum("lost") + sum("wrong") + sum("refused");
  const counted = `${sum("refused")} refused, ${sum("lost")} lost, ${sum("wrong")} wrong`;
  return [...bars, bar("every event accepted, delivered, unchanged", faults === 0, counted, "none")];
}

export const runsOf = ({ ratio = [], sqlite, latency, horizon }: Results): Run[] => [
  ...ratio.flat(),
  ...(sqlite ? [...sqlite.sqlite, ...sqlite.postgres] : []),
  ...(latency ? [...latency.limited, ...latency.free] : []),
  ...(horizon ? [...horizon.before, horizon.during, ...horizon.pinned] : []),
];

const columns = ["events/s", "p50 ms", "p99 ms", "nodes", "µs/event", "database", "µs/event", "batch", "load"] as const;

/** Processors are in units of one; times are for each delivered event. */
export const header = row("", columns);

export const runLine = (label: string, run: Run): string =>
  row(label, [
    run.rate.toFixed(0),
    run.endToEndP50Ms.toFixed(1),
    run.endToEndP99Ms.toFixed(1),
    run.serverCores.toFixed(2),
    run.nodeUs.toFixed(0),
    ...(run.databaseUs === 0 ? ["–", "–"] : [run.databaseCores.toFixed(2), run.databaseUs.toFixed(0)]),
    run.batch.toFixed(1),
    run.generatorCores.toFixed(2),
  ]);

function row(label: string, cells: readonly string[]): string {
  return `${label.padEnd(22)}${cells.map((cell) => cell.padStart(9)).join("")}`;
}
