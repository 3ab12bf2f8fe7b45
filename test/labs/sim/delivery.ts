import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { createVault } from "../../../src/lib/vault.ts";
import { checkBooks } from "./delivery/books.ts";
import { checkEnd } from "./delivery/end-checks.ts";
import { runHistory } from "./delivery/history.ts";
import { makeTemplate } from "./delivery/witness.ts";

/**
 * The way of events over many simulated histories: `bun run sim --seeds 10000`, or `--seed 4711` for one again.
 * The exit code is 1 when an invariant (`delivery/invariants.ts`) was broken.
 */

const { values } = parseArgs({
  options: {
    seeds: { type: "string", default: "1000" },
    first: { type: "string", default: "1" },
    seed: { type: "string" },
  },
});

const first = Number(values.seed ?? values.first);
const last = values.seed === undefined ? first + Number(values.seeds) - 1 : first;
const totals: Record<string, number> = {};
let failures = 0;
const startedAt = performance.now();

// Nothing here is about the disk's own speed: in memory where the system has a folder for it.
const folder = mkdtempSync(join(existsSync("/dev/shm") ? "/dev/shm" : tmpdir(), "postrider-sim-"));
const template = join(folder, "template");
const vault = createVault(randomBytes(32));
try {
  mkdirSync(template);
  await makeTemplate(template);
  for (let seed = first; seed <= last; seed += 1) await run(seed);
} finally {
  rmSync(folder, { recursive: true, force: true });
}

async function run(seed: number): Promise<void> {
  const dataDir = join(folder, String(seed));
  mkdirSync(dataDir);
  let violations: readonly string[];
  try {
    const end = await runHistory(seed, { template, dataDir, vault });
    checkBooks(end);
    checkEnd(end);
    violations = end.findings.list;
    end.client.close();
    for (const [name, count] of Object.entries(end.counts)) totals[name] = (totals[name] ?? 0) + count;
  } catch (error) {
    violations = [error instanceof Error ? (error.stack ?? error.message) : String(error)];
  }
  rmSync(dataDir, { recursive: true, force: true });
  if (violations.length === 0) return;
  failures += 1;
  tell(`seed ${seed}\n${violations.map((violation) => `  ${violation}`).join("\n")}`);
  tell(`  again: bun run sim --seed ${seed}`);
}

function tell(text: string): void {
  process.stdout.write(`${text}\n`);
}

const seconds = (performance.now() - startedAt) / 1000;
const told = Object.entries(totals).map(([name, count]) => `${count} ${name}`);
tell(`${last - first + 1} histories of deliveries, ${seconds.toFixed(1)} s: ${told.join(", ")}; ${failures} failed`);
process.exitCode = failures > 0 ? 1 : 0;
