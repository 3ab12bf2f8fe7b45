import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { proveReplication } from "./proof.ts";
import { litestream, litestreamVariable } from "./replicator.ts";

/**
 * `bun run litestream`: the real Litestream beside a server, through three restarts. `--rate 300` events a second,
 * `--seconds 20` of load between two restarts.
 */
const { values } = parseArgs({
  options: { rate: { type: "string", default: "300" }, seconds: { type: "string", default: "20" } },
});

if (litestream === null) {
  process.stderr.write(
    `There is no litestream on the PATH. Try: name it with ${litestreamVariable}=/path/to/litestream\n`,
  );
  process.exit(2);
}

const folder = mkdtempSync(join(tmpdir(), "postrider-litestream-"));
try {
  const { faults, ...figures } = await proveReplication({
    litestream,
    folder,
    seconds: Number(values.seconds),
    eventsPerSecond: Number(values.rate),
    say: (text) => void process.stderr.write(`${text}\n`),
  });
  process.stdout.write(`${JSON.stringify(figures, null, 2)}\n`);
  for (const fault of faults) process.stdout.write(`FAULT: ${fault}\n`);
  process.exitCode = faults.length === 0 ? 0 : 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}
