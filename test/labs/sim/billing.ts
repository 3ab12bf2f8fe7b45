import { Database } from "bun:sqlite";
import { randomBytes } from "node:crypto";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { systemClock } from "../../../src/lib/clock.ts";
import { createVault } from "../../../src/lib/vault.ts";
import { openStore } from "../../../src/store/open.ts";
import { runHistory } from "./billing/history.ts";
import { violationsOf } from "./billing/invariants.ts";

/**
 * Payments over many simulated histories: `bun run sim:payments --histories 10000`, or `--seed 4711` for one again.
 * The exit code is 1 when an invariant was broken. SIGTERM ends it once `--least` histories have been simulated.
 */

const { values } = parseArgs({
  options: {
    histories: { type: "string", default: "1000" },
    least: { type: "string" },
    first: { type: "string", default: "1" },
    seed: { type: "string" },
  },
});

/** A fresh database after so many accounts, so that none grows large. */
const historiesInOneStore = 250;

const first = Number(values.seed ?? values.first);
const last = values.seed === undefined ? first + Number(values.histories) - 1 : first;
const least = first + Number(values.least ?? values.histories) - 1;
const totals: Record<string, number> = {};
let done = 0;
let failures = 0;
let isCalledOff = false;
process.on("SIGTERM", () => {
  isCalledOff = true;
});
const isEnough = (seed: number) => seed > last || (isCalledOff && seed > least);
const startedAt = performance.now();

for (let from = first; !isEnough(from); from += historiesInOneStore) {
  // Nothing here is about the disk: in memory where the system has a folder for it.
  const dataDir = mkdtempSync(join(existsSync("/dev/shm") ? "/dev/shm" : tmpdir(), "postrider-sim-"));
  const time = { ...systemClock, now: () => clockOf.history.now() };
  const clockOf = { history: systemClock };
  let commits = 0;
  const onCommit = () => {
    commits += 1;
  };
  const { store } = await openStore({ dataDir, clock: time, pauses: false, onCommit });
  const client = new Database(join(dataDir, "postrider.db"), { readonly: true });
  const writer = new Database(join(dataDir, "postrider.db"), { readwrite: true });
  const vault = createVault(randomBytes(32));
  try {
    for (let seed = from; seed < from + historiesInOneStore && !isEnough(seed); seed += 1) {
      await run(seed);
      done += 1;
    }
  } finally {
    client.close();
    writer.close();
    await store.close();
    rmSync(dataDir, { recursive: true, force: true });
  }

  async function run(seed: number): Promise<void> {
    let violations: string[];
    try {
      const end = await runHistory(seed, { store, client, writer, vault, clockOf, commits: () => commits });
      violations = violationsOf(end, client);
      for (const [name, count] of Object.entries(end.counts)) totals[name] = (totals[name] ?? 0) + count;
    } catch (error) {
      violations = [error instanceof Error ? (error.stack ?? error.message) : String(error)];
    }
    if (violations.length === 0) return;
    failures += 1;
    tell(`seed ${seed}\n${violations.map((violation) => `  ${violation}`).join("\n")}`);
    tell(`  again: bun run sim:payments --seed ${seed}`);
  }
}

function tell(text: string): void {
  process.stdout.write(`${text}\n`);
}

const seconds = (performance.now() - startedAt) / 1000;
const told = Object.entries(totals).map(([name, count]) => `${count} ${name}`);
tell(`${done} histories of two years, ${seconds.toFixed(1)} s: ${told.join(", ")}; ${failures} failed`);
process.exitCode = failures > 0 ? 1 : 0;
