import { StartupError } from "../../domain/errors.ts";
import type { Clock } from "../../lib/clock.ts";
import { createVault } from "../../lib/vault.ts";
import { createMasterKeyCheck } from "./master-key.ts";
import { createPool, type Pool } from "./pool.ts";
import { checkServer, type StartCheckOptions } from "./start-check.ts";
import { addressOf } from "./unusable.ts";

/**
 * Somebody else's empty database, borrowed for servers that are demonstrated or tested on it; they leave it as they found it.
 */
export interface BorrowedDatabase {
  /** Host, port and database; never the password. */
  readonly place: string;
  /**
   * Removes everything in it, if it belongs to servers with this master key, which must have ended. Others may have taken the
   * database since it was found empty: then it is left alone.
   * @returns whether the database is empty
   */
  giveBack(masterKey: Uint8Array): Promise<boolean>;
}

export interface BorrowOptions extends Pick<StartCheckOptions, "setting" | "durability"> {
  url: string;
  clock: Clock;
}

/** @throws StartupError when it cannot be reached, is not reliable, or is not empty, with what to do */
export async function borrowDatabase({ url, clock, ...check }: BorrowOptions): Promise<BorrowedDatabase> {
  await checkServer({ url, clock, ...check });
  const place = addressOf(url);
  const withPool = async <T>(work: (pool: Pool) => Promise<T>): Promise<T> => {
    const pool = createPool({ url, size: 1, clock });
    try {
      return await work(pool);
    } finally {
      await pool.close();
    }
  };
  const found = await withPool(relationsIn);
  if (found.length > 0) throw notEmpty(place, found);

  return {
    place,
    giveBack: (masterKey) =>
      withPool(async (pool) => {
        const relations = await relationsIn(pool);
        if (relations.length === 0) return true;
        if (!relations.some(({ name }) => name === "vault_check")) return false;
        const key = createMasterKeyCheck(createVault(masterKey));
        return pool.transact(async (tx) => {
          if (!(await key.holds(tx))) return false;
          const named = (which: boolean) =>
            relations.filter(({ isSequence }) => isSequence === which).map(({ name }) => `"${name}"`);
          await tx.run(`drop table ${named(false).join(", ")} cascade`);
          // Some have been dropped with their tables.
          for (const sequence of named(true)) await tx.run(`drop sequence if exists ${sequence}`);
          return true;
        });
      }),
  };
}

interface Relation {
  readonly name: string;
  readonly isSequence: boolean;
}

/** Everything that has rows. Partitions go with their tables. */
const relationsIn = (pool: Pool): Promise<Relation[]> =>
  pool.read<Relation>(
    `select relname::text as name, relkind = 'S' as "isSequence" from pg_class
      where relnamespace = current_schema()::regnamespace and relkind in ('r', 'p', 'v', 'm', 'f', 'S')
        and not relispartition
      order by 1`,
  );

function notEmpty(place: string, [first, ...others]: readonly Relation[]): StartupError {
  const named = others.length === 0 ? `${first?.name}` : `${first?.name} and ${others.length} more`;
  return new StartupError(
    `The database at ${place} is not empty: it has ${named}. ` +
      "Try: create database postrider_demo encoding 'UTF8' template template0, and name that one.",
  );
}
