import { join } from "node:path";
import type { Clock } from "../lib/clock.ts";
import type { StoreLook } from "./look.ts";
import type { OpenedStore, StorageSizes } from "./opened.ts";
import type { BorrowedDatabase, BorrowOptions } from "./postgres/borrowed.ts";
import type { PostgresOptions } from "./postgres/store.ts";
import { type Compacted, type CompactOptions, compactDatabase } from "./sqlite/compact.ts";
import { type Examination, examineDatabase } from "./sqlite/examine.ts";
import { checkPages, lookAtDatabase, opensWith, type PagesCheck } from "./sqlite/look.ts";
import { databaseFile, databaseSizes } from "./sqlite/open.ts";
import type { Snapshot } from "./sqlite/pre-migration.ts";
import { type RotatedKey, type RotateKeyOptions, rotateKey, type SealingOf, sealingOf } from "./sqlite/rotate-key.ts";
import { openSqliteStore, type SqliteOptions } from "./sqlite/store.ts";
import { isOfThisSchema, type UpgradeOptions, type UpgradeProgress, upgradeDatabase } from "./sqlite/upgrade.ts";

/** A file in the data directory; or a database that other servers may share. */
export type StoreOptions = SqliteOptions | PostgresOptions;

/**
 * Opens the store, or makes a new one. A backend is picked here: nothing else outside of its folder knows which one there
 * is.
 * @throws StartupError with what to do
 */
export async function openStore(options: StoreOptions): Promise<OpenedStore> {
  if (!("url" in options)) return openSqliteStore(options);
  // What only some servers need is no part of every start.
  const { openPostgresStore } = await import("./postgres/store.ts");
  return openPostgresStore(options);
}

export type { Snapshot, UpgradeOptions, UpgradeProgress };

/**
 * Brings an earlier store to this program's form beforehand, watched and in little memory; `openStore` would do it too, but
 * holds the event loop until it is done.
 *
 * @returns false when it was stopped
 * @throws StartupError with what to do, when there is too little room, or it fails
 */
export const upgradeStore = (options: UpgradeOptions): Promise<boolean> => upgradeDatabase(options);

/** Writes a store anew that no server has open, without the room that nothing uses. See `compactDatabase`. */
export const compactStore = (options: CompactOptions): Promise<Compacted | null> => compactDatabase(options);

/** Whether a store that another process may have open needs no upgrade, and is of no newer program either. */
export const storeFits = (dataDir: string): boolean => isOfThisSchema(dataDir);

/** As `storeFits`, of a database that servers share. What a start needs of this program is loaded by then. */
export async function sharedStoreFits(options: Pick<PostgresOptions, "url" | "clock">): Promise<boolean> {
  const [{ isOfThisSchema }] = await Promise.all([import("./postgres/migrations.ts"), import("./postgres/store.ts")]);
  return isOfThisSchema(options);
}

/** Seals all of a store that no server has open with another master key, or nothing. See `rotateKey`. */
export const rotateStoreKey = (options: RotateKeyOptions): RotatedKey => rotateKey(options);

/** Whether a store that no server has open is sealed with this key. */
export const sealingOfStore = (dataDir: string, masterKey: Uint8Array): SealingOf => sealingOf(dataDir, masterKey);

/** Looks through a store that no server has open, as it was left, also by one that was killed. */
export const examineStore = async (dataDir: string): Promise<Examination> => examineDatabase(dataDir);

export type { BorrowedDatabase };

/** See `BorrowedDatabase`. @throws StartupError with what to do */
export async function borrowDatabase(options: BorrowOptions): Promise<BorrowedDatabase> {
  const borrowed = await import("./postgres/borrowed.ts");
  return borrowed.borrowDatabase(options);
}

export type { PagesCheck, StoreLook };

/**
 * Looks at a store that a server may have open, and changes nothing.
 * @returns null when there is none yet
 * @throws StartupError when it cannot be reached or read, with what to do
 */
export async function lookAtStore({
  dataDir,
  url,
  clock,
}: {
  dataDir: string;
  url: string | null;
  clock: Clock;
}): Promise<StoreLook | null> {
  if (url === null) return lookAtDatabase(dataDir);
  const { lookAtServer } = await import("./postgres/look.ts");
  return lookAtServer({ url, clock });
}

/** The files of a store in a folder: sizes, and the one that others may have open. */
export const storeFiles = (dataDir: string): StorageSizes & { readonly path: string } => ({
  ...databaseSizes(dataDir),
  path: join(dataDir, databaseFile),
});

/** See `opensWith`. */
export const storeOpensWith = (dataDir: string, masterKey: Uint8Array): boolean => opensWith(dataDir, masterKey);

/** See `checkPages`. */
export const checkStorePages = (options: { dataDir: string; withinMs: number | null; clock: Clock }) =>
  checkPages(options);
