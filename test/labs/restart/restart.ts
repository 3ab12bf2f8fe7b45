import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { tryRestarts } from "./trial.ts";

/**
 * `bun run restarts`: `postrider restart` under a load that does not let up. `EXECUTABLE_UNDER_TEST` names an executable in
 * place of the sources. The exit code is 0 when no request was refused or waited for more than 250 ms, and every event was
 * delivered.
 */
const help = `Usage: bun run restarts [options]

  --nodes N      so many servers on one PostgreSQL, restarted in turn; without it one server with SQLite
  --restarts 5   how many
  --rate 200     events a second
  --seconds 8    of load between two restarts
  --slow 1000    milliseconds that a twentieth of the deliveries take
`;

const { values } = parseArgs({
  options: {
    nodes: { type: "string" },
    restarts: { type: "string", default: "5" },
    rate: { type: "string", default: "200" },
    seconds: { type: "string", default: "8" },
    slow: { type: "string", default: "1000" },
    help: { type: "boolean", short: "h", default: false },
  },
});

if (values.help) {
  process.stdout.write(help);
  process.exit();
}

const longestMs = 250;
const folder = mkdtempSync(join(tmpdir(), "postrider-restarts-"));
try {
  const { faults, ...figures } = await tryRestarts({
    nodes: values.nodes === undefined ? null : Number(values.nodes),
    restarts: Number(values.restarts),
    eventsPerSecond: Number(values.rate),
    seconds: Number(values.seconds),
    slowMs: Number(values.slow),
    folder,
    say: (text) => void process.stderr.write(`${text}\n`),
  });
  process.stdout.write(`${JSON.stringify(figures, null, 2)}\n`);
  for (const fault of faults.slice(0, 20)) process.stdout.write(`FAULT: ${fault}\n`);
  process.exitCode = faults.length === 0 && figures.longestMs <= longestMs ? 0 : 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}
process.exit();
