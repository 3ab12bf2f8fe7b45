import { Database } from "bun:sqlite";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runCommand } from "../../src/cli/run.ts";
import { openDataDir } from "../../src/data-dir.ts";
import type { MoveMark } from "../../src/store/move-mark.ts";
import { writeMoveMark } from "../../src/store/sqlite/move-mark.ts";
import { databaseFile } from "../../src/store/sqlite/open.ts";
import { fill, masterKey } from "./filled-folder.ts";
import { createScriptedIo } from "./scripted-io.ts";

/** A data directory with some of everything, and commands that work on it. */
export async function createBackedUp() {
  const folder = mkdtempSync(join(tmpdir(), "postrider-backup-"));
  const dataDir = join(folder, "data");
  const backups = join(folder, "backups");
  mkdirSync(dataDir, { mode: 0o700 });
  writeFileSync(join(dataDir, "master-key"), Buffer.from(masterKey).toString("hex"), { mode: 0o600 });
  await fill(dataDir);
  openDataDir(dataDir).release();

  async function run(args: readonly string[], env: Record<string, string> = {}) {
    const { io, out, err } = createScriptedIo({ env: { POSTRIDER_DATA_DIR: dataDir, ...env } });
    const code = await runCommand(args, io);
    return { code, out: out.join("\n"), err: err.join("\n") };
  }

  return {
    folder,
    dataDir,
    /** Where backups are made by default; not there before the first one. */
    backups,
    run,
    /** Makes a backup there, and returns its location. */
    async backUp(to = `${backups}/`, env: Record<string, string> = {}): Promise<string> {
      const { out, err } = await run(["backup", to, "--json"], env);
      if (out === "") throw new Error(err);
      return JSON.parse(out).backup;
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

export type BackedUp = Awaited<ReturnType<typeof createBackedUp>>;

/** As a move to PostgreSQL has left the folder, on its way or at its end. */
export function markMove(folder: string, role: MoveMark["role"]): void {
  const client = new Database(join(folder, databaseFile));
  writeMoveMark(client, { move: "m", role, place: "PostgreSQL at db/postrider" });
  client.close();
}
