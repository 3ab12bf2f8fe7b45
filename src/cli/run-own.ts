import type { RunOwn } from "../backup/backups.ts";
import { removeLeftBy } from "../backup/leftovers.ts";
import { type Clock, systemClock } from "../lib/clock.ts";
import { ownProgram } from "../own-program.ts";

/** How long a command may take to end. One that checks a large database does not hear the signal for longer than that. */
const endPatienceMs = 5_000;

/** Runs commands of this program with the settings of this one. */
export const createRunOwn =
  (
    env: Readonly<Record<string, string | undefined>>,
    dataDir: string,
    { program = ownProgram, clock = systemClock }: { program?: readonly string[]; clock?: Clock } = {},
  ): RunOwn =>
  async (args, signal) => {
    const child = Bun.spawn([...program, ...args], {
      env: { ...env, POSTRIDER_DATA_DIR: dataDir },
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
      signal,
      killSignal: "SIGTERM",
    });
    let cancelKill = () => {};
    const killLater = () => {
      cancelKill = clock.after(endPatienceMs, () => child.kill("SIGKILL"));
    };
    signal.addEventListener("abort", killLater);
    try {
      const [out, err] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
      const code = await child.exited;
      if (child.signalCode === "SIGKILL") await removeLeftBy(child.pid, dataDir);
      return { code, out, err };
    } finally {
      signal.removeEventListener("abort", killLater);
      cancelKill();
    }
  };
