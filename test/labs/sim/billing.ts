import { randomBytes } from "node:crypto";
import { parseArgs } from "node:util";
import { systemClock } from "../../../src/lib/clock.ts";
import { createVault } from "../../../src/lib/vault.ts";
import { runHistory } from "./billing/history.ts";
import { violationsOf } from "./billing/invariants.ts";
import { openPostgres } from "./billing/postgres-store.ts";
import { openSqlite } from "./billing/sqlite-store.ts";

/**
 * Payments over many simulated histories: `bun run sim:payments --histories 10000`, or `--seed 4711` for one again. With
 * `--postgres` over that, at the server that tests have: with the same faults and customers, and with two billers that race
 * each other. What comes at once there comes in any order, so a seed need not repeat.
 *
 * The exit code is 1 when an invariant was broken. SIGTERM ends it once `--least` histories have been simulated.
 */

const { values } = parseArgs({
  options: {
    histories: { type: "string", default: "1000" },
    least: { type: "string" },
    first: { type: "string", default: "1" },
    seed: { type: "string" },
    postgres: { type: "boolean", default: false },
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

/** Histories under way: one that waits for the server leaves the processor to the others. Over SQLite nothing waits. */
const sideBySide = values.postgres ? 4 : 1;
let next = first;

/** One history after the other, in a store of its own. */
async function simulate(): Promise<void> {
  const time = { ...systemClock, now: () => clockOf.history.now() };
  const clockOf = { history: systemClock };
  const simulated = await (values.postgres ? openPostgres : openSqlite)(time);
  const vault = createVault(randomBytes(32));
  try {
    for (let left = historiesInOneStore; left > 0 && !isEnough(next); left -= 1) {
      const seed = next;
      next += 1;
      await run(seed);
      done += 1;
    }
  } finally {
    await simulated.end();
  }

  async function run(seed: number): Promise<void> {
    let violations: string[];
    try {
      const end = await runHistory(seed, { simulated, vault, clockOf });
      violations = await violationsOf(end, simulated);
      for (const [name, count] of Object.entries(end.counts)) totals[name] = (totals[name] ?? 0) + count;
    } catch (error) {
      violations = [error instanceof Error ? (error.stack ?? error.message) : String(error)];
    }
    if (violations.length === 0) return;
    failures += 1;
    tell(`seed ${seed}\n${violations.map((violation) => `  ${violation}`).join("\n")}`);
    tell(`  again: bun run sim:payments --seed ${seed}${values.postgres ? " --postgres" : ""}`);
  }
}

await Promise.all(
  Array.from({ length: sideBySide }, async () => {
    while (!isEnough(next)) await simulate();
  }),
);

function tell(text: string): void {
  process.stdout.write(`${text}\n`);
}

const seconds = (performance.now() - startedAt) / 1000;
const told = Object.entries(totals).map(([name, count]) => `${count} ${name}`);
tell(`${done} histories of two years, ${seconds.toFixed(1)} s: ${told.join(", ")}; ${failures} failed`);
process.exitCode = failures > 0 ? 1 : 0;
