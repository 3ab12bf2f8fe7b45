import { Database } from "bun:sqlite";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { createVault } from "../../lib/vault.ts";
import type { KeptSecrets } from "../vault-check.ts";
import { createMasterKeyCheck } from "./master-key.ts";
import { databaseFile, openDatabase } from "./open.ts";
import { leaveLogAlone, waitForLocks } from "./pragma.ts";

/** What values are sealed for, by those who seal them. */
export interface SealedContexts {
  key(tenantId: string, keyId: string): string;
  signingSecret(tenantId: string): string;
  headers(tenantId: string): string;
  card(accountId: string): string;
}

export interface RotateKeyOptions {
  /** Of a database that nobody else has open, of today's schema. */
  dataDir: string;
  from: Uint8Array;
  to: Uint8Array;
  contexts: SealedContexts;
  /** What has to outlive the key, where nothing is kept yet. */
  outliving: KeptSecrets;
  onProgress(resealed: number): void;
}

export interface RotatedKey {
  readonly resealed: number;
  /** Values that did not open before either: damaged, and left as they are. */
  readonly damaged: number;
}

interface SealedRow {
  readonly key: number;
  readonly sealed: Uint8Array;
  /** The account, or the billing account. */
  readonly owner: string;
  readonly id: string;
}

/** Every column with sealed values but `vault_check`. */
export const sealedColumns = [
  { table: "api_key", column: "sealed" },
  { table: "signing_key", column: "sealed_seed" },
  { table: "signing_secret", column: "sealed" },
  { table: "webhook", column: "sealed_headers" },
  { table: "saved_card", column: "sealed" },
] as const;

/** Rows in memory at once. */
const stepSize = 500;

/**
 * Seals all that is sealed in a database with another master key, in one transaction: whatever happens to the process, all
 * is under the one key or under the other, and the row of `vault_check` says which. What was sealed with the former key is
 * overwritten in the file.
 */
export function rotateKey({ dataDir, from, to, contexts, outliving, onProgress }: RotateKeyOptions): RotatedKey {
  const [former, next] = [createVault(from), createVault(to)];
  const client = openDatabase({ dataDir, vault: former });
  try {
    client.run("pragma secure_delete = on");
    const kept = { ...outliving, ...createMasterKeyCheck(client, former).kept() };
    let resealed = 0;
    let damaged = 0;
    client.run("begin immediate");
    for (const { table, column } of sealedColumns) {
      const ofAccount = table === "saved_card";
      const read = client.prepare<SealedRow, [number]>(
        `select own.key, own.${column} as sealed, owner.id as owner, ${ofAccount || table === "signing_secret" ? "''" : "own.id"} as id
         from ${table} own join ${ofAccount ? "billing_account owner on owner.key = own.account_key" : "tenant owner on owner.key = own.tenant_key"}
         where own.key > ?1 and own.${column} is not null order by own.key limit ${stepSize}`,
      );
      const write = client.prepare(`update ${table} set ${column} = ?2 where key = ?1`);
      const contextOf = ({ owner, id }: SealedRow) =>
        ({
          api_key: () => contexts.key(owner, id),
          signing_key: () => contexts.key(owner, id),
          signing_secret: () => contexts.signingSecret(owner),
          webhook: () => contexts.headers(owner),
          saved_card: () => contexts.card(owner),
        })[table]();
      for (let rows = read.all(0); rows.length > 0; rows = read.all(rows.at(-1)?.key ?? 0)) {
        for (const row of rows) {
          const context = contextOf(row);
          let plain: Uint8Array;
          try {
            plain = former.open(row.sealed, context);
          } catch {
            damaged += 1;
            continue;
          }
          write.run(row.key, next.seal(plain, context));
          resealed += 1;
        }
        onProgress(resealed);
      }
    }
    createMasterKeyCheck(client, next).keep(kept);
    client.run("commit");
    client.run("pragma wal_checkpoint(truncate)");
    return { resealed, damaged };
  } finally {
    // What was not committed is undone.
    client.close();
  }
}

/** Whether a database that nobody else has open is sealed with this key, so that a rotation to it has ended. */
export function isSealedWith(dataDir: string, masterKey: Uint8Array): boolean {
  const path = join(dataDir, databaseFile);
  if (!existsSync(path)) return false;
  const client = new Database(path, { readwrite: true, create: false });
  try {
    waitForLocks(client);
    leaveLogAlone(client);
    const table = client.query("select 1 from sqlite_schema where type = 'table' and name = 'vault_check'").get();
    return table !== null && createMasterKeyCheck(client, createVault(masterKey)).holds();
  } finally {
    client.close();
  }
}
