import { Database } from "bun:sqlite";
import { join } from "node:path";
import { StartupError } from "../../domain/errors.ts";
import { messageOf } from "../../lib/error-message.ts";
import { createVault } from "../../lib/vault.ts";
import { isDamage } from "../sqlite/damage.ts";
import { findMiscounts } from "../sqlite/examine.ts";
import { createMasterKeyCheck } from "../sqlite/master-key.ts";
import { migrations, standingOf } from "../sqlite/migrations.ts";
import { readMoveMark } from "../sqlite/move-mark.ts";
import { databaseFile, keepTemporaryFilesIn } from "../sqlite/open.ts";
import { type Books, compareBooks, readBooks } from "./books.ts";

export interface CopyCheck {
  /** What does not hold, in words; nothing when all does. */
  readonly faults: readonly string[];
  /** It is of an earlier program, whose figures only an upgrade brings to the form that can be compared with their rows. */
  readonly isEarlier: boolean;
  /** Of the given master keys, the one that opens it; null: none was given, or found. */
  readonly openedWith: Uint8Array | null;
}

/** The fault of a database that none of the given master keys opens. */
export const wrongKey = "the master key does not open what is sealed in the database";

/** Of what is wrong in the same way many times. */
const mostTold = 5;

/**
 * Whether a restored database is what its manifest says, and whole: its pages, its references, its books, the figures that
 * are kept beside their rows, and that a master key opens it.
 * @param masterKeys of these one does; none: not known here
 * @throws StartupError when it is of a newer program
 */
export function checkCopy(
  dataDir: string,
  { books, schema, masterKeys }: { books: Books; schema: number; masterKeys: readonly Uint8Array[] },
): CopyCheck {
  const client = new Database(join(dataDir, databaseFile), { readwrite: true, create: false, strict: true });
  try {
    keepTemporaryFilesIn(client, dataDir);
    const { schema: found } = standingOf(client);
    if (found > migrations.length) {
      throw new StartupError(
        `The backup was made by a newer version of Postrider (schema ${found}; this one has ${migrations.length}). ` +
          "Try: that version.",
      );
    }
    const pages = client.query<{ quick_check: string }, []>(`pragma quick_check(${mostTold})`).values().flat();
    if (pages[0] !== "ok") return onlyFaults(pages.map((fault) => `database: ${fault}`));
    const orphans = client.query<{ table: string; parent: string }, []>("pragma foreign_key_check").all();
    const isEarlier = found < migrations.length;
    const openedWith = masterKeys.find((key) => opens(client, key)) ?? null;
    const faults = [
      ...(found === schema ? [] : [`the schema is ${found}, and the manifest says ${schema}`]),
      ...faultsOfMove(client),
      ...orphans.slice(0, mostTold).map(({ table, parent }) => `a row of ${table} has no ${parent}`),
      ...compareBooks(books, readBooks(client)),
      ...(isEarlier ? [] : findMiscounts(client).slice(0, mostTold)),
      ...(masterKeys.length === 0 || openedWith !== null ? [] : [wrongKey]),
    ];
    // The file is what gets restored, by itself, and closing would pass over a log that there is no room to copy back.
    client.run("pragma wal_checkpoint(truncate)");
    return { faults, isEarlier, openedWith };
  } catch (error) {
    if (!isDamage(error)) throw error;
    return onlyFaults([`database: ${messageOf(error)}`]);
  } finally {
    client.close(true);
  }
}

/** Earlier releases made backups of what had been left, on which no server starts. */
function faultsOfMove(client: Database): string[] {
  const mark = readMoveMark(client);
  if (mark?.role === "left") return [`its data had been moved to ${mark.place} before it was made`];
  return mark?.role === "arriving" ? [`the move from ${mark.place} had not ended when it was made`] : [];
}

const onlyFaults = (faults: readonly string[]): CopyCheck => ({ faults, isEarlier: false, openedWith: null });

function opens(client: Database, masterKey: Uint8Array): boolean {
  try {
    createMasterKeyCheck(client, createVault(masterKey)).verify();
    return true;
  } catch (error) {
    if (!(error instanceof StartupError)) throw error;
    return false;
  }
}
