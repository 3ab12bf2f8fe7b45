import { StartupError } from "../../domain/errors.ts";
import type { Vault } from "../../lib/vault.ts";
import { fromVaultCheck, type KeptSecrets, toVaultCheck, vaultCheckContext } from "../vault-check.ts";
import type { Pool, Transaction } from "./pool.ts";

/**
 * Checks that the master key is that of the database, and so of all its nodes. A known text, sealed with the key, is in a
 * table of one row, which the first node writes.
 */
export interface MasterKeyCheck {
  /** To be called before anything is written. @throws StartupError when what is sealed cannot be opened */
  verify(pool: Pool): Promise<void>;
  /** Writes the row if there is none, once its table exists. @throws StartupError when another node wrote one meanwhile */
  remember(pool: Pool): Promise<void>;
  /** Rewrites the row, with these secrets in it; for a database that nobody uses yet. */
  keep(tx: Pick<Transaction, "run">, kept: KeptSecrets): Promise<void>;
  /** Secrets that have outlived the master key they were derived from. */
  kept(pool: Pool): Promise<KeptSecrets>;
  /**
   * For a node that has just got its place: the key may have been replaced since. @throws StartupError when the row cannot be
   * opened
   */
  admit(tx: Pick<Transaction, "run">): Promise<void>;
  /** Whether the row exists and can be opened. */
  holds(tx: Pick<Transaction, "run">): Promise<boolean>;
}

export function createMasterKeyCheck(vault: Vault): MasterKeyCheck {
  /** Null: there is no row. */
  async function opens({ run }: Pick<Transaction, "run">): Promise<boolean | null> {
    const [row] = await run<{ sealed: Uint8Array }>("select sealed from vault_check where id = 1");
    if (!row) return null;
    try {
      vault.open(row.sealed, vaultCheckContext);
      return true;
    } catch {
      return false;
    }
  }

  const check = async (pool: Pool) => {
    if ((await opens({ run: pool.read })) === false) throw anotherKey();
  };

  return {
    async verify(pool) {
      const [found] = await pool.read<{ isThere: boolean }>(
        `select to_regclass('vault_check') is not null as "isThere"`,
      );
      if (found?.isThere) await check(pool);
    },

    async remember(pool) {
      await pool.write("insert into vault_check (id, sealed) values (1, $1::bytea) on conflict do nothing", [
        vault.seal(toVaultCheck({}), vaultCheckContext),
      ]);
      await check(pool);
    },

    async keep({ run }, kept) {
      await run(
        "insert into vault_check (id, sealed) values (1, $1::bytea) on conflict (id) do update set sealed = excluded.sealed",
        [vault.seal(toVaultCheck(kept), vaultCheckContext)],
      );
    },

    async kept(pool) {
      const [row] = await pool.read<{ sealed: Uint8Array }>("select sealed from vault_check where id = 1");
      return row ? fromVaultCheck(vault.open(row.sealed, vaultCheckContext)) : {};
    },

    async admit(tx) {
      if ((await opens(tx)) === false) throw anotherKey();
    },

    holds: async (tx) => (await opens(tx)) === true,
  };
}

const anotherKey = () =>
  new StartupError(
    "The master key is not the one that the database was written with: what is sealed in it does not open. " +
      "Try: give this node the master key of the others, or restore database and secrets from the same backup; " +
      "nothing was changed.",
  );
