import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";

/**
 * `bun postgres-keeper.ts FOLDER`: waits for the end of its input, which is the end of the process that started it, however
 * that came about, and then ends the PostgreSQL server in the folder and removes it. No process of PostgreSQL minds who
 * started it: without this one a killed test run would leave a server behind.
 */
const folder = process.argv[2] ?? "";
const pidFile = join(folder, "data", "postmaster.pid");

/** Then whoever is still there stands still. */
const patienceMs = 5_000;

/** It takes its file away when it ends. The process may stay in the table for longer, if nobody asks what became of it. */
async function end(pid: number): Promise<void> {
  process.kill(pid, "SIGQUIT");
  const until = performance.now() + patienceMs;
  while (existsSync(pidFile) && performance.now() < until) await Bun.sleep(10);
  if (existsSync(pidFile)) process.kill(pid, "SIGKILL");
}

process.on("SIGINT", () => {});
for await (const _ of Bun.stdin.stream());
if (existsSync(pidFile)) await end(Number(readFileSync(pidFile, "utf8").split("\n")[0])).catch(() => {});
rmSync(folder, { recursive: true, force: true, maxRetries: 10 });
