import { Database } from "bun:sqlite";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { isDiskFull } from "../../lib/disk-full.ts";
import { createKeyring, createVault } from "../../lib/vault.ts";
import { beforeAll, contextOf, type Resealed, type SealedContexts, sealedPlaces } from "../sealed.ts";
import { formerKeyIn, type KeptSecrets, withFormerKey } from "../vault-check.ts";
import { createMasterKeyCheck } from "./master-key.ts";
import { databaseFile, openDatabase, orInWords } from "./open.ts";
import { leaveLogAlone, waitForLocks } from "./pragma.ts";
import { createSealedTables } from "./sealed.ts";

export interface RotateKeyOptions {
  /** Folder of a database with the current schema that no other process has open. */
  dataDir: string;
  /** What the database is sealed with; may already be `to` when a rotation on a running server was not finished. */
  from: Uint8Array;
  to: Uint8Array;
  contexts: SealedContexts;
  /** What has to outlive the key, if nothing is kept yet. */
  outliving: KeptSecrets;
  onProgress(resealed: number): void;
}

export interface RotatedKey {
  readonly resealed: number;
  /** Values that could not be opened before either: they are damaged, and left as they are. */
  readonly damaged: number;
}

/** Rows in memory at a time. */
const stepSize = 500;

/**
 * Reseals everything in a database with another master key, in one transaction: whatever happens to the process, either
 * everything is as it was or everything is under the new key, and the row of `vault_check` says which. What was sealed with the
 * former key is overwritten in the file.
 * @throws StartupError when the database is damaged or its disk is full; then nothing was changed
 */
export const rotateKey = (options: RotateKeyOptions): RotatedKey =>
  orInWords(options.dataDir, () => resealAll(options));

function resealAll({ dataDir, from, to, contexts, outliving, onProgress }: RotateKeyOptions): RotatedKey {
  const vault = createKeyring(from);
  const client = openDatabase({ dataDir, vault });
  try {
    client.run("pragma secure_delete = on");
    const found = createMasterKeyCheck(client, vault).kept();
    const older = formerKeyIn(found);
    if (older !== null) vault.learn(older);
    vault.sealWith(to);
    const isNew = (key: Uint8Array) => Buffer.compare(key, to) === 0;
    let resealed = 0;
    let damaged = 0;
    client.run("begin immediate");
    const tables = createSealedTables(client);
    for (const place of sealedPlaces) {
      for (let at: { key: number } | null = beforeAll; at !== null; ) {
        const { values, next } = tables[place].slice(at.key, stepSize);
        for (const value of values) {
          const context = contextOf(contexts, place, value);
          const key = vault.keyOf(value.sealed, context);
          if (key === null) damaged += 1;
          if (key === null || isNew(key)) continue;
          const sealed = vault.seal(vault.open(value.sealed, context), context);
          const change: Resealed = { ...value, was: value.sealed, sealed };
          tables[place].replace(change);
          resealed += 1;
        }
        if (resealed > 0) onProgress(resealed);
        at = next;
      }
    }
    createMasterKeyCheck(client, createVault(to)).keep(withFormerKey({ ...outliving, ...found }, null));
    client.run("commit");
    copyLogBack(client);
    return { resealed, damaged };
  } finally {
    // This undoes whatever was not committed.
    client.close(true);
  }
}

/** Everything is resealed by then: what there is no room for is copied back by whoever opens the database next. */
function copyLogBack(client: Database): void {
  try {
    client.run("pragma wal_checkpoint(truncate)");
  } catch (error) {
    if (!isDiskFull(error)) throw error;
  }
}

/** How a database that no other process has open is sealed. */
export interface SealingOf {
  /** The key opens its `vault_check`. */
  readonly isSealed: boolean;
  /** A rotation is in progress: there may be values left that only the former key opens. */
  readonly isUnderWay: boolean;
}

export function sealingOf(dataDir: string, masterKey: Uint8Array): SealingOf {
  const nothing = { isSealed: false, isUnderWay: false };
  const path = join(dataDir, databaseFile);
  if (!existsSync(path)) return nothing;
  const client = new Database(path, { readwrite: true, create: false });
  try {
    waitForLocks(client);
    leaveLogAlone(client);
    const table = client.query("select 1 from sqlite_schema where type = 'table' and name = 'vault_check'").get();
    if (table === null) return nothing;
    const check = createMasterKeyCheck(client, createVault(masterKey));
    return check.holds() ? { isSealed: true, isUnderWay: formerKeyIn(check.kept()) !== null } : nothing;
  } finally {
    client.close(true);
  }
}
