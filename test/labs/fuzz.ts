import { existsSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { describeMachine } from "./bench/machine.ts";

/**
 * The random tests for longer, or one of them again: `bun run fuzz bytes --times 100000`, `bun run fuzz api --seed 4711`.
 * The suites are the files of `test/labs/fuzz`; `--times` counts texts (bytes), requests to each operation (api), walks (model)
 * and connections (wire). What fails in the store (faults) is not random: every call does once.
 */

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { seed: { type: "string" }, times: { type: "string" } },
});
const root = join(import.meta.dir, "..", "..");
const files =
  positionals.length === 0 ? ["test/labs/fuzz/"] : positionals.map((suite) => `test/labs/fuzz/${suite}.test.ts`);
const isNumber = (text: string | undefined) => text === undefined || /^\d+$/.test(text);
if (!isNumber(values.seed) || !isNumber(values.times) || !files.every((file) => existsSync(join(root, file)))) {
  process.stderr.write("Try: bun run fuzz [api|bytes|faults|model|wire] [--times N] [--seed N]\n");
  process.exit(2);
}

const { hardware, versions, busyBefore } = await describeMachine();
process.stdout.write(`${hardware}\n${versions}\n${busyBefore}\n`);
const startedAt = performance.now();
const child = Bun.spawn([process.execPath, "test", ...files, "--timeout=86400000"], {
  cwd: root,
  env: {
    ...process.env,
    FUZZ_REPORT: "1",
    ...(values.seed !== undefined && { FUZZ_SEED: values.seed }),
    ...(values.times !== undefined && { FUZZ_TIMES: values.times }),
  },
  stdin: "ignore",
  stdout: "inherit",
  stderr: "inherit",
});
process.exitCode = await child.exited;
const seconds = (performance.now() - startedAt) / 1000;
const peakMib = (child.resourceUsage()?.maxRSS ?? 0) / 2 ** 20;
process.stdout.write(
  `${seconds.toFixed(1)} s, at most ${peakMib.toFixed(0)} MiB resident, clients and receivers included\n`,
);
