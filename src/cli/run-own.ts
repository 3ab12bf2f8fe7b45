import type { RunOwn } from "../backup/backups.ts";
import { removeLeftBy } from "../backup/leftovers.ts";
import { type Clock, systemClock } from "../lib/clock.ts";
import { ownProgram } from "../own-program.ts";

/** How long a command may take to end. One that checks a large database does not hear the signal for longer than that. */
const endPatienceMs = 5_000;

/** How long a folder that is not ours may take to answer: its mount may hang. */
const folderPatienceMs = 1_000;

interface RunOwnDeps {
  program?: readonly string[];
  clock?: Clock;
  removeLeft?: typeof removeLeftBy;
}

/** Runs commands of this program with the settings of this one. */
export const createRunOwn =
  (
    env: Readonly<Record<string, string | undefined>>,
    dataDir: string,
    { program = ownProgram, clock = systemClock, removeLeft = removeLeftBy }: RunOwnDeps = {},
  ): RunOwn =>
  async (args, signal, target = null) => {
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
      if (child.signalCode === "SIGKILL") {
        await removeLeft(child.pid, dataDir);
        if (target !== null) await upTo(folderPatienceMs, clock, removeLeft(child.pid, target));
      }
      return { code, out, err };
    } finally {
      signal.removeEventListener("abort", killLater);
      cancelKill();
    }
  };

/** Waits for work that may as well fail, but no longer than this. */
async function upTo(ms: number, clock: Clock, work: Promise<void>): Promise<void> {
  const { promise: late, resolve } = Promise.withResolvers<void>();
  const cancel = clock.after(ms, resolve);
  await Promise.race([work.catch(() => {}), late]);
  cancel();
}
