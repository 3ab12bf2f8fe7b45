import { join } from "node:path";
import type { Clock } from "../lib/clock.ts";
import type { StoreLook } from "./look.ts";
import type { OpenedStore, StorageSizes } from "./opened.ts";
import type { BorrowedDatabase, BorrowOptions } from "./postgres/borrowed.ts";
import type { PostgresOptions } from "./postgres/store.ts";
import { type Compacted, type CompactOptions, compactDatabase } from "./sqlite/compact.ts";
import { type Examination, examineDatabase } from "./sqlite/examine.ts";
import { checkPages, lookAtDatabase, opensWith, type PagesCheck } from "./sqlite/look.ts";
import { databaseFile, databaseFolder, databaseSizes, orInWords } from "./sqlite/open.ts";
import { missingKeysIn, type Snapshot } from "./sqlite/pre-migration.ts";
import { type RotatedKey, type RotateKeyOptions, rotateKey, type SealingOf, sealingOf } from "./sqlite/rotate-key.ts";
import { openSqliteStore, type SqliteOptions } from "./sqlite/store.ts";
import { isOfThisSchema, type UpgradeOptions, type UpgradeProgress, upgradeDatabase } from "./sqlite/upgrade.ts";

/** A file in the data directory, or a database that other servers may share. */
export type StoreOptions = SqliteOptions | PostgresOptions;

/**
 * Opens the store, or creates a new one. The backend is picked here: outside its own folder, nothing else knows which one is
 * in use.
 * @throws StartupError with what to do; `shutting_down` when the signal of the options came first
 */
export async function openStore(options: StoreOptions): Promise<OpenedStore> {
  if (!("url" in options)) return openSqliteStore(options);
  // Loaded on demand: a start should not pay for what only some servers need.
  const { openPostgresStore } = await import("./postgres/store.ts");
  return openPostgresStore(options);
}

export type { Snapshot, UpgradeOptions, UpgradeProgress };

/**
 * Upgrades an older store to this program's schema ahead of opening it, with progress reports and in little memory.
 * `openStore` would do it too, but blocks the event loop until it is done.
 *
 * @returns false when it was stopped
 * @throws StartupError with what to do, when there is too little room, or it fails
 */
export const upgradeStore = (options: UpgradeOptions): Promise<boolean> => upgradeDatabase(options);

/** Rewrites a store that no server has open, without its unused space. See `compactDatabase`. */
export const compactStore = (options: CompactOptions): Promise<Compacted | null> => compactDatabase(options);

/** Whether a store, which another process may have open, needs no upgrade and was not written by a newer program either. */
export const storeFits = (dataDir: string): boolean => orInWords(dataDir, () => isOfThisSchema(dataDir));

/** Like `storeFits`, for a database that servers share. Also loads the modules that opening it will need. */
export async function sharedStoreFits(options: Pick<PostgresOptions, "url" | "clock">): Promise<boolean> {
  const [{ isOfThisSchema }] = await Promise.all([import("./postgres/migrations.ts"), import("./postgres/store.ts")]);
  return isOfThisSchema(options);
}

/** Reseals a store that no server has open with another master key, all of it or nothing. See `rotateKey`. */
export const rotateStoreKey = (options: RotateKeyOptions): RotatedKey => rotateKey(options);

/** See `missingKeysIn`. */
export const missingSnapshotKeys = (dataDir: string): string[] => missingKeysIn(join(dataDir, databaseFile));

/** Whether a store that no server has open is sealed with this key. */
export const sealingOfStore = (dataDir: string, masterKey: Uint8Array): SealingOf =>
  orInWords(dataDir, () => sealingOf(dataDir, masterKey));

/** Examines a store that no server has open, in the state in which it was left, even by a killed server. */
export const examineStore = async (dataDir: string): Promise<Examination> => examineDatabase(dataDir);

export type { BorrowedDatabase };

/** See `BorrowedDatabase`. @throws StartupError with what to do */
export async function borrowDatabase(options: BorrowOptions): Promise<BorrowedDatabase> {
  const borrowed = await import("./postgres/borrowed.ts");
  return borrowed.borrowDatabase(options);
}

export type { PagesCheck, StoreLook };

/** Where a store is. */
export interface StorePlace {
  readonly dataDir: string;
  /** Null: in the data directory. */
  readonly url: string | null;
  readonly clock: Clock;
}

/**
 * Looks at a store that a server may have open, without changing anything.
 * @returns null when there is none yet
 * @throws StartupError when it cannot be reached or read, with what to do
 */
export async function lookAtStore({ dataDir, url, clock }: StorePlace): Promise<StoreLook | null> {
  if (url === null) return lookAtDatabase(dataDir);
  const { lookAtServer } = await import("./postgres/look.ts");
  return lookAtServer({ url, clock });
}

/** The folder whose disk a store is on; if that is not here, the data directory. */
export const storeFolderOf = ({ dataDir, url }: Pick<StorePlace, "dataDir" | "url">): string =>
  url === null ? databaseFolder(dataDir) : dataDir;

/** The files of a store in a folder: their sizes, and the path of the one that others may have open. */
export const storeFiles = (dataDir: string): StorageSizes & { readonly path: string } => ({
  ...databaseSizes(dataDir),
  path: join(dataDir, databaseFile),
});

/** Whether a master key opens what is sealed in a store. @throws when it cannot be read */
export async function storeOpensWith({ dataDir, url, clock }: StorePlace, masterKey: Uint8Array): Promise<boolean> {
  if (url === null) return opensWith(dataDir, masterKey);
  const postgres = await import("./postgres/look.ts");
  return postgres.opensWith({ url, clock }, masterKey);
}

/** See `checkPages`. */
export const checkStorePages = (options: { dataDir: string; withinMs: number | null; clock: Clock }) =>
  checkPages(options);
