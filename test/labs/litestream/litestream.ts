import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { proveReplication } from "./proof.ts";
import { litestream, litestreamVariable } from "./replicator.ts";

/** `bun run litestream`: the real Litestream beside a server from the sources, through three restarts. */
const help = `Usage: ${litestreamVariable}=/path/to/litestream bun run litestream [options]

  --rate 300     events a second
  --seconds 20   of load between two restarts
  --runs 1       how often all of it
  --kills 0      restart by kill -9 alone, so many times
  --keep         keep the folder of a run with a fault: the database, the replica, what was restored from it and what
                 Litestream said
`;

const { values } = parseArgs({
  options: {
    rate: { type: "string", default: "300" },
    seconds: { type: "string", default: "20" },
    runs: { type: "string", default: "1" },
    kills: { type: "string", default: "0" },
    keep: { type: "boolean", default: false },
    help: { type: "boolean", short: "h", default: false },
  },
});

if (values.help) {
  process.stdout.write(help);
  process.exit();
}

if (litestream === null) {
  process.stderr.write(
    `There is no litestream on the PATH. Try: name it with ${litestreamVariable}=/path/to/litestream\n`,
  );
  process.exit(2);
}

const print = (text: string) => void process.stdout.write(`${text}\n`);

/** Whether all was as it should be. */
async function run(executable: string): Promise<boolean> {
  const folder = mkdtempSync(join(tmpdir(), "postrider-litestream-"));
  let isFine = false;
  try {
    const { faults, ...figures } = await proveReplication({
      litestream: executable,
      folder,
      seconds: Number(values.seconds),
      eventsPerSecond: Number(values.rate),
      kills: Number(values.kills),
      say: (text) => void process.stderr.write(`${text}\n`),
    });
    print(JSON.stringify(figures, null, 2));
    for (const fault of faults) print(`FAULT: ${fault}`);
    isFine = faults.length === 0;
  } catch (error) {
    print(`FAULT: ${error instanceof Error ? error.message : error}`);
  } finally {
    if (values.keep && !isFine) print(`Kept: ${folder}`);
    else rmSync(folder, { recursive: true, force: true });
  }
  return isFine;
}

const runs = Number(values.runs);
let faulty = 0;
for (let done = 0; done < runs; done++) if (!(await run(litestream))) faulty += 1;
if (runs > 1) print(`${runs} runs, ${faulty} with a fault`);
process.exitCode = faulty === 0 ? 0 : 1;
