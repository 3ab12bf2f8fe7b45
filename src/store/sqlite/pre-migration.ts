import type { Database } from "bun:sqlite";
import { existsSync, readdirSync, rmSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { StartupError } from "../../domain/errors.ts";
import { messageOf } from "../../lib/error-message.ts";
import { copyDatabase } from "./copy-database.ts";
import type { Standing } from "./migrations.ts";
import { noteUpgrade, readWrittenBy, realPath, snapshotKeyOf } from "./written-by.ts";

/**
 * The way back from an upgrade: a copy of the database as it was, next to it.
 *
 *   copy to …bak.part ─▶ on disk, renamed …bak ─▶ noted in the database ─▶ first step … last step ─▶ older copies deleted
 *
 * If the process is killed before the note, nothing has changed, and the next start copies again. Once the note is written, the
 * rest of the upgrade makes no other copy: it would be of a database that is halfway.
 */
export interface Snapshot {
  readonly file: string;
  readonly bytes: number;
}

/** The copy that an upgrade will make first. */
export interface SnapshotPlan {
  readonly file: string;
  /** The most that the copy will take. */
  readonly bytes: number;
}

const nameOf = (path: string, from: number, to: number) => `${basename(path)}.pre-migration-v${from}-to-v${to}.bak`;

/** Whether an upgrade has begun on a database that it has not brought to its schema yet. */
export const hasBegun = (client: Database, { statements }: Standing): boolean =>
  statements > 0 || readWrittenBy(client)?.upgrading === 1;

/** Null when the upgrade has already begun. */
export function planSnapshot(client: Database, standing: Standing, toSchema: number): SnapshotPlan | null {
  if (hasBegun(client, standing)) return null;
  const path = realPath(client.filename);
  const numberOf = (pragma: string) => Number(client.query<[number], []>(`pragma ${pragma}`).values()[0]?.[0] ?? 0);
  const bytes = (numberOf("page_count") - numberOf("freelist_count")) * numberOf("page_size");
  return { file: join(dirname(path), nameOf(path, standing.schema, toSchema)), bytes };
}

/**
 * To be called before the first step of an upgrade.
 * @param isWanted false: upgrade without a way back
 * @returns the copy that it made
 * @throws StartupError when that is not possible; nothing was changed
 */
export function beginUpgrade(
  client: Database,
  standing: Standing,
  { plan, isWanted }: { plan: SnapshotPlan | null; isWanted: boolean },
): Snapshot | null {
  if (plan === null) return null;
  if (!isWanted) {
    noteUpgrade(client, { fromSchema: standing.schema, snapshot: null });
    return null;
  }
  try {
    copyDatabase(client.filename, plan.file);
    // Of an earlier copy of that name, which somebody has deleted.
    rmSync(snapshotKeyOf(plan.file), { force: true });
  } catch (error) {
    throw new StartupError(
      `The snapshot of ${client.filename}, which the upgrade would go back to, cannot be written (${messageOf(error)}); ` +
        "nothing was changed. Try: make room on its disk, run the earlier version, or make a copy yourself and start with --no-snapshot.",
    );
  }
  noteUpgrade(client, { fromSchema: standing.schema, snapshot: basename(plan.file) });
  return { file: plan.file, bytes: statSync(plan.file).size };
}

/** To be called after the last step: if this upgrade has its own copy as the way back, those of earlier upgrades are obsolete. */
export function removeOlderSnapshots(client: Database): string[] {
  const snapshot = readWrittenBy(client)?.snapshot ?? null;
  if (snapshot === null) return [];
  const older = snapshotsOf(client.filename).filter((file) => basename(file) !== snapshot);
  for (const file of older.flatMap((file) => [file, snapshotKeyOf(file)])) rmSync(file, { force: true });
  return older;
}

/** Removes what an upgrade left behind if it was killed while copying. */
export function removeUnfinished(databasePath: string): void {
  for (const file of filesLike(databasePath, /\.bak\.part$/)) rmSync(file, { force: true });
}

export const snapshotsOf = (databasePath: string): string[] => filesLike(databasePath, /\.bak$/);

/**
 * A copy is sealed with the master key of its time. When the key is replaced for the first time after that, it is kept in these
 * files: without it the copies were no way back.
 */
export const missingKeysIn = (databasePath: string): string[] =>
  snapshotsOf(databasePath)
    .map(snapshotKeyOf)
    .filter((file) => !existsSync(file));

function filesLike(databasePath: string, ending: RegExp): string[] {
  const path = realPath(databasePath);
  const ours = `${basename(path)}.pre-migration-v`;
  return readdirSync(dirname(path))
    .filter((name) => name.startsWith(ours) && ending.test(name))
    .map((name) => join(dirname(path), name));
}
