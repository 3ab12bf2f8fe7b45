import { parseArgs } from "node:util";
import { sharedOptions } from "../command.ts";
import { positive } from "../options.ts";

export const measures = ["ratio", "sqlite", "latency", "horizon"] as const;
export type Measure = (typeof measures)[number];

export interface Options {
  only: readonly Measure[];
  rounds: number;
  /** Of each run. */
  seconds: number;
  warmupSeconds: number;
  /** Processors of a node. */
  cores: number;
  /** Processors of a node and the database together, and of a node on SQLite. */
  pairCores: number;
  /** That a transaction is held open. */
  horizonSeconds: number;
  dataDir: string | undefined;
  source: boolean;
  gate: boolean;
}

const help = `Usage: bun run bench:nodes [options]

Nodes on one PostgreSQL, each with a fraction of a processor, in control groups of Linux: so that two processors show what
more machines would. Needs root, or a control group that this user may divide.

  --only LIST           of ${measures.join(",")}; default: ${measures.filter((name) => name !== "horizon").join(",")}
                          ratio    1, 2 and 3 nodes at full speed, and the database's processor time for an event
                          sqlite   a node and its database beside a node on SQLite, with as much processor time
                          latency  one node at 200 events a second, first with no limit
                          horizon  a transaction that is held open at 800 events a second
  --rounds 3            times that each is measured, in turn; the median counts
  --seconds 10          measured seconds of a run
  --warmup 2            seconds before, not measured
  --cores 0.3           processors of a node
  --pair-cores 0.6      processors of a node and the database together, and of a node on SQLite
  --horizon-seconds 180 how long the transaction is held open
  --data-dir DIR        where the temporary folders are made; default: the system's, or the repository's when that is in memory
  --source              run src/main.ts instead of dist/postrider
  --no-gate             exit with 0 also when a bar is missed
`;

export function readOptions(args: readonly string[]): Options | string {
  const { values } = parseArgs({
    args: [...args],
    options: {
      only: { type: "string", default: measures.filter((name) => name !== "horizon").join(",") },
      rounds: { type: "string", default: "3" },
      seconds: { type: "string", default: "10" },
      warmup: { type: "string", default: "2" },
      cores: { type: "string", default: "0.3" },
      "pair-cores": { type: "string", default: "0.6" },
      "horizon-seconds": { type: "string", default: "180" },
      ...sharedOptions,
    },
  });
  if (values.help) return help;
  return {
    only: values.only.split(",").map(readMeasure),
    rounds: positive("rounds", values.rounds),
    seconds: positive("seconds", values.seconds),
    warmupSeconds: positive("warmup", values.warmup),
    cores: positive("cores", values.cores),
    pairCores: positive("pair-cores", values["pair-cores"]),
    horizonSeconds: positive("horizon-seconds", values["horizon-seconds"]),
    dataDir: values["data-dir"],
    source: values.source,
    gate: !values["no-gate"],
  };
}

function readMeasure(text: string): Measure {
  const measure = measures.find((name) => name === text.trim());
  if (measure === undefined) throw new Error(`--only takes ${measures.join(", ")}, not "${text}".`);
  return measure;
}
