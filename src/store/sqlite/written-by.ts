import type { Database } from "bun:sqlite";
import { existsSync, lstatSync, readlinkSync, realpathSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { StartupError } from "../../domain/errors.ts";
import { isDiskFull } from "../../lib/disk-full.ts";
import { shellWord } from "../../lib/shell-word.ts";
import { version } from "../../version.ts";

/**
 * Which program last wrote the database, and how it was last upgraded. The table is not part of any migration: it is written
 * before the first one, and an earlier program, which knows none of the later tables, learns from it how to go back.
 */
export interface WrittenBy {
  readonly version: string;
  /** Schema before its last upgrade; null when there was none. */
  readonly fromSchema: number | null;
  /** The file next to it that holds the database as it was then; null when there is none. */
  readonly snapshot: string | null;
  /** 1 from before the first step of an upgrade until its end. */
  readonly upgrading: 0 | 1;
}

export function readWrittenBy(client: Database): WrittenBy | null {
  const hasTable = client.query("select 1 from sqlite_schema where type = 'table' and name = 'written_by'").get();
  if (!hasTable) return null;
  return client
    .query<WrittenBy, []>("select version, from_schema as fromSchema, snapshot, upgrading from written_by")
    .get();
}

function write(client: Database, { version, fromSchema, snapshot, upgrading }: WrittenBy): void {
  client.transaction(() => {
    client.run(`create table if not exists written_by
      (id integer primary key, version text not null, from_schema integer, snapshot text, upgrading integer not null)`);
    client.run(
      "insert or replace into written_by (id, version, from_schema, snapshot, upgrading) values (1, ?1, ?2, ?3, ?4)",
      [version, fromSchema, snapshot, upgrading],
    );
  })();
}

/** To be called before the first step. */
export function noteUpgrade(
  client: Database,
  { fromSchema, snapshot }: Pick<WrittenBy, "fromSchema" | "snapshot">,
): void {
  write(client, { version, fromSchema, snapshot, upgrading: 1 });
}

/** Notes that the schema is this program's. Writes once per version, and can do without on a full disk. */
export function noteProgram(client: Database): void {
  const known = readWrittenBy(client);
  if (known?.version === version && known.upgrading === 0) return;
  const { fromSchema = null, snapshot = null } = known ?? {};
  try {
    write(client, { version, fromSchema, snapshot, upgrading: 0 });
  } catch (error) {
    if (!isDiskFull(error)) throw error;
  }
}

/** The error of an earlier program, with the way back if there is one. */
export function newerDatabase(client: Database, { found, known }: { found: number; known: number }): StartupError {
  const by = readWrittenBy(client);
  const path = realPath(client.filename);
  const snapshot = by?.snapshot ? join(dirname(path), by.snapshot) : null;
  const remedies = [
    `run ${by ? by.version : "that version"} or a later one`,
    snapshot !== null && existsSync(snapshot)
      ? wayBack(client.filename, snapshot, { found, known, ofSnapshot: by?.fromSchema ?? known })
      : "point POSTRIDER_DATA_DIR at a backup made before the upgrade",
  ];
  return new StartupError(
    `The database ${path} was written by a newer Postrider (${by ? `${by.version}, ` : ""}schema ${found}); ` +
      `this is ${version}, which knows schema ${known}. Try: ${remedies.join("; or ")}.`,
  );
}

function wayBack(
  databasePath: string,
  snapshot: string,
  schemas: { found: number; known: number; ofSnapshot: number },
): string {
  const { found, known, ofSnapshot } = schemas;
  const needs = ofSnapshot > known ? `, with a version that knows schema ${ofSnapshot}` : "";
  const path = realPath(databasePath);
  const file = basename(path);
  const commands = [
    `cd ${shellWord(dirname(path))}`,
    `mv ${file} ${file}.v${found}`,
    `rm -f ${file}-wal ${file}-shm`,
    `mv ${basename(snapshot)} ${file}`,
  ];
  if (existsSync(snapshotKeyOf(snapshot))) {
    const key = join(dirname(databasePath), "master-key");
    commands.push(
      `mv ${shellWord(key)} ${shellWord(`${key}.v${found}`)}`,
      `mv ${basename(snapshotKeyOf(snapshot))} ${shellWord(key)}`,
    );
  }
  return `go back to the snapshot from before the upgrade${needs}, without what came since: ${commands.join(" && ")}`;
}

/** Where the master key of a copy is kept, if it has been replaced since and is in the data directory. */
export const snapshotKeyOf = (snapshot: string): string => `${snapshot}.master-key`;

/** The database path may be a link to another disk; this is what the link points to, even if nothing is there. */
export function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    const isLink = lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true;
    return isLink ? resolve(dirname(path), readlinkSync(path)) : path;
  }
}
