import { median } from "../histogram.ts";
import { type Bar, bar, ms } from "../report.ts";
import type { Run } from "./cluster.ts";

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
const maxOverYardstick = 1.5;
const minOfSqlite = 0.6;
const maxLatencyMs = 15;
const minPinned = 0.9;

/** Of the rounds: the runs of one had the same machine, whatever else that did meanwhile. */
const ratioOf = (these: readonly Run[], those: readonly Run[]): number =>
  median(these.map(({ rate }, round) => rate / (those[round]?.rate ?? Number.NaN)));

const over = (runs: readonly MeasuredRun[]): number =>
  median(runs.map(({ databaseUs, yardstickUs }) => databaseUs / yardstickUs));

export function judge(results: Results): Bar[] {
  const { ratio, sqlite, latency, horizon } = results;
  const bars: Bar[] = [];
  const atLeast = (name: string, measured: number, wanted: number, digits = 2) =>
    bars.push(bar(name, measured >= wanted, measured.toFixed(digits), `at least ${wanted}`));
  const [one = []] = ratio ?? [];
  ratio?.forEach((runs, i) => {
    if (i > 0) atLeast(`${i + 1} nodes beside one`, ratioOf(runs, one), minRatios[i] ?? Number.NaN);
  });
  ratio?.forEach((runs, i) => {
    const name = `the database's processor time for an event, ${i + 1} nodes, beside that of the bare statements`;
    bars.push(bar(name, over(runs) <= maxOverYardstick, over(runs).toFixed(2), `at most ${maxOverYardstick}`));
  });
  if (sqlite) atLeast("PostgreSQL beside SQLite", ratioOf(sqlite.postgres, sqlite.sqlite), minOfSqlite);
  if (latency) {
    const p99 = median(latency.free.map(({ endToEndP99Ms }) => endToEndP99Ms));
    bars.push(
      bar("end to end p99 at 200/s, one node with no limit", p99 < maxLatencyMs, ms(p99), `under ${maxLatencyMs} ms`),
    );
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
