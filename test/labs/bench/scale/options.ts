import { parseArgs } from "node:util";
import { sharedOptions } from "../command.ts";
import { positive } from "../options.ts";

export const parts = ["reads", "restart", "rescue", "pages", "search", "replay", "erase", "retention"] as const;
export type Part = (typeof parts)[number];

/** One server has nobody who could rescue it; how room comes back is the database's own affair in PostgreSQL. */
const partsOf = (postgres: boolean): Part[] =>
  parts.filter((part) => !(postgres ? ["erase", "retention"] : ["rescue"]).includes(part));

export interface Options {
  /** Events in the database, one run each. */
  sizes: readonly number[];
  parts: readonly Part[];
  /** Events a second that are ingested beside whatever is measured. */
  rate: number;
  /** Of ingestion alone, and of pages beside it. */
  seconds: number;
  warmupSeconds: number;
  restarts: number;
  /** Longest time that a replay, and a deletion, is watched. */
  atMostSeconds: number;
  /** The seeded databases are moved to a PostgreSQL, and measured there. */
  postgres: boolean;
  dataDir: string | undefined;
  keep: boolean;
  source: boolean;
  gate: boolean;
  plot: string | undefined;
}

const help = `Usage: bun run bench:scale [options]

What a long history costs: seeds a database of each size and measures lists, single events, a restart with a tenth of the
events pending, deep pages, searches, the replay of a tenth, the deletion of the largest tenant, and a retention that lets go
what is not pending, with ingestion beside it.

  --sizes LIST       sizes in events, smallest first; default: 10k,100k,1M,10M (10M takes 6 GB of disk, with its copy 12)
  --events N         one size
  --parts LIST       what to measure; default: ${partsOf(false).join(",")}; rescue needs --postgres, erase and retention are of SQLite
  --postgres         move the seeded database to a PostgreSQL of its own, with fsync on, and measure there
  --rate 1000        events ingested a second beside what is measured
  --seconds 30       measured seconds of ingestion alone, and of deep pages and searches beside it
  --warmup 5         seconds of ingestion before, not measured
  --restarts 5       times that the server is killed and started again
  --at-most S        watch the replay and the deletion no longer than this; default: until they have ended
  --data-dir DIR     where the seeded databases are; one that is there is used again, and stays
  --keep             leave the seeded databases also when their folder was made by this command
  --plot FILE        write the plot to this SVG file
  --source           run src/main.ts instead of dist/postrider
  --no-gate          exit with 0 also when a bar is missed

A seeded database is not changed: what writes is measured on a copy of it, which is removed.
`;

export function readOptions(args: readonly string[]): Options | string {
  const { values } = parseArgs({
    args: [...args],
    options: {
      sizes: { type: "string", default: "10k,100k,1M,10M" },
      events: { type: "string" },
      parts: { type: "string" },
      postgres: { type: "boolean", default: false },
      rate: { type: "string", default: "1000" },
      seconds: { type: "string", default: "30" },
      warmup: { type: "string", default: "5" },
      restarts: { type: "string", default: "5" },
      "at-most": { type: "string" },
      plot: { type: "string" },
      keep: { type: "boolean", default: false },
      ...sharedOptions,
    },
  });
  if (values.help) return help;
  return {
    sizes: (values.events ?? values.sizes).split(",").map(readSize),
    parts: values.parts?.split(",").map((text) => readPart(text, values.postgres)) ?? partsOf(values.postgres),
    postgres: values.postgres,
    rate: positive("rate", values.rate),
    seconds: positive("seconds", values.seconds),
    warmupSeconds: positive("warmup", values.warmup),
    restarts: positive("restarts", values.restarts),
    atMostSeconds: values["at-most"] === undefined ? Number.POSITIVE_INFINITY : positive("at-most", values["at-most"]),
    dataDir: values["data-dir"],
    keep: values.keep || values["data-dir"] !== undefined,
    source: values.source,
    gate: !values["no-gate"],
    plot: values.plot,
  };
}

const unitsOfSize: Record<string, number> = { "": 1, k: 1_000, m: 1_000_000 };
/** Below, the parts of a history are too few to be measured. */
const smallestSize = 1_000;

function readSize(text: string): number {
  const [, digits, unit = ""] = /^(\d+)([kKmM]?)$/.exec(text.trim()) ?? [];
  const size = Number(digits) * (unitsOfSize[unit.toLowerCase()] ?? Number.NaN);
  if (!(size >= smallestSize)) throw new Error(`A size is a number of events from ${smallestSize} up, not "${text}".`);
  return size;
}

function readPart(text: string, postgres: boolean): Part {
  const there = partsOf(postgres);
  const part = there.find((name) => name === text.trim());
  if (part === undefined) throw new Error(`--parts takes ${there.join(", ")}, not "${text}".`);
  return part;
}
