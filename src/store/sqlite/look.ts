import { constants, Database } from "bun:sqlite";
import { existsSync, realpathSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { StartupError } from "../../domain/errors.ts";
import type { Clock } from "../../lib/clock.ts";
import { messageOf } from "../../lib/error-message.ts";
import { ingestedAtMs } from "../../lib/id.ts";
import { faultOf } from "../../lib/threads.ts";
import { createVault } from "../../lib/vault.ts";
import type { StoreFigures, StoreLook } from "../look.ts";
import { isDamage } from "./damage.ts";
import { createMasterKeyCheck } from "./master-key.ts";
import { migrations, standingOf } from "./migrations.ts";
import { readMoveMark, refusalOf } from "./move-mark.ts";
import { databaseFile, sqliteVersion } from "./open.ts";
import { waitForLocks } from "./pragma.ts";
import { hasBegun } from "./pre-migration.ts";
import { queueDepth } from "./queue-depth.ts";

/**
 * Opens a database read-only, whether or not a server has it open. If there is no log, no server has, and SQLite would create
 * one just to read: the file is then opened as one that does not change.
 */
export function openToLook(dataDir: string): { client: Database; isTakenAsStill: boolean } {
  const path = realpathSync(join(dataDir, databaseFile));
  const isTakenAsStill = !existsSync(`${path}-wal`);
  const { SQLITE_OPEN_READONLY, SQLITE_OPEN_URI } = constants;
  const client = isTakenAsStill
    ? new Database(`${pathToFileURL(path)}?immutable=1`, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI)
    : new Database(path, { readonly: true });
  waitForLocks(client);
  return { client, isTakenAsStill };
}

/** @returns null when there is no database yet @throws StartupError when it cannot be read */
export const lookAtDatabase = (dataDir: string): StoreLook | null =>
  lookInto(dataDir, (client, path) => {
    const standing = standingOf(client);
    const { schema, statements } = standing;
    const found = statements > 0 ? schema + 1 : schema;
    const refusal = refusalOf(readMoveMark(client), path);
    const isHalfway = schema < migrations.length && hasBegun(client, standing);
    return {
      backend: `SQLite ${sqliteVersion(client)}`,
      schema: { found, known: migrations.length, isHalfway },
      refusal,
      figures: schema === migrations.length && statements === 0 && refusal === null ? figuresOf(client) : null,
      server: null,
    };
  });

/** See `openToLook`. @returns null when there is no database yet @throws StartupError when it cannot be read */
export function lookInto<T>(dataDir: string, look: (client: Database, path: string) => T): T | null {
  const path = join(dataDir, databaseFile);
  if (!existsSync(path)) return null;
  let client: Database | null = null;
  try {
    ({ client } = openToLook(dataDir));
    return look(client, path);
  } catch (error) {
    const remedy = isDamage(error)
      ? "restore it from a backup"
      : "run the command as the user that runs the server, and check that the disk answers";
    throw new StartupError(`The database ${path} cannot be read (${messageOf(error)}). Try: ${remedy}.`);
  } finally {
    client?.close(true);
  }
}

/** Whether this master key opens what is sealed in a database. @throws the system's error when it cannot be read */
export function opensWith(dataDir: string, masterKey: Uint8Array): boolean {
  const { client } = openToLook(dataDir);
  try {
    createMasterKeyCheck(client, createVault(masterKey)).verify();
    return true;
  } catch (error) {
    if (error instanceof StartupError) return false;
    throw error;
  } finally {
    client.close(true);
  }
}

/** Where a move has taken everything in it. Null: nowhere, or it cannot be read. */
export function movedTo(dataDir: string): string | null {
  let client: Database | null = null;
  try {
    ({ client } = openToLook(dataDir));
    const mark = readMoveMark(client);
    return mark?.role === "left" ? mark.place : null;
  } catch {
    return null;
  } finally {
    client?.close(true);
  }
}

function figuresOf(client: Database): StoreFigures {
  const newest = client.query<{ seq: number | null }, []>("select max(seq) as seq from event").get()?.seq ?? null;
  const { pending, oldestDueAt } = queueDepth(client);
  return {
    newestEventAt: newest === null ? null : ingestedAtMs(newest),
    waiting: pending,
    oldestDueAt,
  };
}

/** How a check of all pages ended. */
export type PagesCheck = { readonly kind: "whole" } | { readonly kind: "unfinished" } | PagesFault;

interface PagesFault {
  readonly kind: "damaged" | "failed";
  /** In SQLite's words. */
  readonly fault: string;
}

export type PagesRequest = { readonly dataDir: string };

/**
 * SQLite's `quick_check` of the whole database, in a Worker: there is no other way to stop waiting for it. While it reads, a
 * running server's log cannot be restarted.
 * @param withinMs null: as long as it takes
 */
export async function checkPages({
  dataDir,
  withinMs,
  clock,
}: {
  dataDir: string;
  withinMs: number | null;
  clock: Clock;
}): Promise<PagesCheck> {
  const worker = new Worker(new URL("./look-worker.ts", import.meta.url), { env: {} });
  let cancel = () => {};
  try {
    return await new Promise<PagesCheck>((resolve) => {
      if (withinMs !== null) cancel = clock.after(withinMs, () => resolve({ kind: "unfinished" }));
      worker.onerror = (event) => resolve({ kind: "failed", fault: faultOf(event) });
      worker.onmessage = ({ data }: MessageEvent<PagesCheck>) => resolve(data);
      worker.postMessage({ dataDir } satisfies PagesRequest);
    });
  } finally {
    cancel();
    worker.terminate();
  }
}
