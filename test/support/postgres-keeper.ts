import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";

/**
 * `bun postgres-keeper.ts FOLDER`: waits for the end of its input, which means that the process that started it has
 * ended, for whatever reason; then stops the PostgreSQL server in the folder and removes the folder. PostgreSQL does not
 * care who started it: without this process, a killed test run would leave a server behind.
 */
const folder = process.argv[2] ?? "";
const pidFile = join(folder, "data", "postmaster.pid");

/** After this long, anything still running is stuck. */
const patienceMs = 5_000;

/**
 * PostgreSQL removes its pid file when it ends. The process may stay in the process table for longer, if nobody reaps it.
 */
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
