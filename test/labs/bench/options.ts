import { parseArgs } from "node:util";
import { sharedOptions } from "./command.ts";

export interface Options {
  pairs: number;
  seconds: number;
  halfSeconds: number;
  warmupSeconds: number;
  source: boolean;
  keep: boolean;
  json: boolean;
  gate: boolean;
  bareOnly: boolean;
  /** By what the bare relay delivers. */
  client: "own" | "node";
  dataDir: string | undefined;
  profileDir: string | undefined;
}

const help = `Usage: bun run bench [options]

The bare relay and Postrider with everything on, in alternating pairs on loopback, then Postrider at half load.

  --pairs 3          pairs of runs
  --seconds 20       measured seconds of a run
  --warmup 3         seconds before, not measured
  --half-seconds 60  seconds at half of the rate measured
  --source           run src/main.ts instead of dist/postrider
  --data-dir DIR     where the temporary data folder is made; default: the system's, or the repository's when that is in memory
  --keep             leave the data folder
  --json             print one JSON object, and the words to standard error
  --no-gate          exit with 0 also when a bar is missed
  --bare             only the ceiling and the bare relay
  --client node      the bare relay delivers by node:http; "own": by Postrider's own transport, which takes half as much
  --profile DIR      (with --source) only Postrider at full load; its CPU profile is written there and summed up
`;

export function readOptions(args: readonly string[]): Options | string {
  const { values } = parseArgs({
    args: [...args],
    options: {
      pairs: { type: "string", default: "3" },
      seconds: { type: "string", default: "20" },
      warmup: { type: "string", default: "3" },
      "half-seconds": { type: "string", default: "60" },
      profile: { type: "string" },
      keep: { type: "boolean", default: false },
      json: { type: "boolean", default: false },
      bare: { type: "boolean", default: false },
      client: { type: "string", default: "node" },
      ...sharedOptions,
    },
  });
  if (values.help) return help;
  if (values.profile !== undefined && !values.source) throw new Error("--profile needs --source.");
  return {
    pairs: positive("pairs", values.pairs),
    seconds: positive("seconds", values.seconds),
    halfSeconds: positive("half-seconds", values["half-seconds"]),
    warmupSeconds: positive("warmup", values.warmup),
    source: values.source,
    keep: values.keep,
    json: values.json,
    gate: !values["no-gate"],
    bareOnly: values.bare,
    client: values.client === "own" ? "own" : "node",
    dataDir: values["data-dir"],
    profileDir: values.profile,
  };
}

export function positive(name: string, text: string): number {
  const value = Number(text);
  if (!(value > 0)) throw new Error(`--${name} takes a number above 0, not "${text}".`);
  return value;
}
