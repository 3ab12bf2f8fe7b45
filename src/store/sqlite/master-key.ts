import type { Database } from "bun:sqlite";
import { keyContext } from "../../domain/credentials.ts";
import { StartupError } from "../../domain/errors.ts";
import type { Vault } from "../../lib/vault.ts";
import { fromVaultCheck, holdsSecrets, type KeptSecrets, toVaultCheck, vaultCheckContext } from "../vault-check.ts";

/**
 * Checks whether the master key is the database's. A known text, sealed with the key, is stored in a table of one row. As long
 * as that is missing, in a new database or one of an earlier program, the keys of the latest accounts decide.
 */
export interface MasterKeyCheck {
  /** To be called before anything is written. @throws StartupError when nothing that is sealed can be opened */
  verify(): void;
  /** Writes the row if it is missing or damaged; to be called once the schema is up to date. */
  remember(): void;
  /** Rewrites the row, with these secrets in it. */
  keep(kept: KeptSecrets): void;
  /** Secrets that have outlived the master key they were derived from. */
  kept(): KeptSecrets;
  /** The row can be read and opened. */
  holds(): boolean;
}

/** How many of the stored keys are tried: if one is damaged, that does not mean that the master key is wrong. */
const sampleSize = 8;
const samples = `
  select tenant.id as tenantId, api_key.id as keyId, api_key.sealed as sealed
  from api_key join tenant on tenant.key = api_key.tenant_key order by api_key.key desc limit ${sampleSize}`;

export function createMasterKeyCheck(client: Database, vault: Vault): MasterKeyCheck {
  const has = (table: string) =>
    client.query("select 1 from sqlite_schema where type = 'table' and name = ?1").get(table) !== null;

  function opens(sealed: Uint8Array, sealedFor: string): boolean {
    try {
      vault.open(sealed, sealedFor);
      return true;
    } catch {
      return false;
    }
  }

  const row = (): Uint8Array | null =>
    client.query<{ sealed: Uint8Array }, []>("select sealed from vault_check where id = 1").get()?.sealed ?? null;

  function holds(): boolean {
    const sealed = row();
    return sealed !== null && opens(sealed, vaultCheckContext);
  }

  function keep(kept: KeptSecrets): void {
    const sealed = vault.seal(toVaultCheck(kept), vaultCheckContext);
    client.run("insert or replace into vault_check (id, sealed) values (1, ?1)", [sealed]);
  }

  return {
    verify() {
      if (!has("api_key")) return;
      const sealed = has("vault_check") ? row() : null;
      const hasRow = sealed !== null;
      if (hasRow && holds()) return;
      // While the key is being replaced, some values still open with the former one: that does not make it the database's.
      if (hasRow && holdsSecrets(sealed)) throw anotherKey();
      const keys = client.query<{ tenantId: string; keyId: string; sealed: Uint8Array }, []>(samples).all();
      if (keys.some(({ tenantId, keyId, sealed }) => opens(sealed, keyContext(tenantId, keyId)))) return;
      if (keys.length === 0 && !hasRow) return;
      throw anotherKey();
    },

    remember() {
      if (!holds()) keep({});
    },

    keep,

    kept() {
      if (!has("vault_check")) return {};
      const sealed = row();
      return sealed !== null && holds() ? fromVaultCheck(vault.open(sealed, vaultCheckContext)) : {};
    },

    holds,
  };
}

const anotherKey = () =>
  new StartupError(
    "The master key (of POSTRIDER_MASTER_KEY_FILE, or else master-key in the data directory) is not the one that the database " +
      "was written with: what is sealed in it does not open. Try: restore database and secrets from the same backup, or run " +
      "postrider rotate-key again if it was interrupted; nothing was changed.",
  );
