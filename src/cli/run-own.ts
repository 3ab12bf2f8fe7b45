import type { RunOwn } from "../backup/backups.ts";
import { ownProgram } from "../own-program.ts";

/** Runs commands of this program with the settings of this one. */
export const createRunOwn =
  (env: Readonly<Record<string, string | undefined>>, dataDir: string): RunOwn =>
  async (args, signal) => {
    const child = Bun.spawn([...ownProgram, ...args], {
      env: { ...env, POSTRIDER_DATA_DIR: dataDir },
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
      signal,
      killSignal: "SIGTERM",
    });
    const [out, err] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
    return { code: await child.exited, out, err };
  };
