import { StartupError } from "../../domain/errors.ts";
import { type MoveMark, refusalOf as refusalOfMark } from "../move-mark.ts";
import type { Pool, Transaction } from "./pool.ts";

export async function readMoveMark({ read }: Pick<Pool, "read">): Promise<MoveMark | null> {
  const [found] = await read<{ isThere: boolean }>(`select to_regclass('move_mark') is not null as "isThere"`);
  if (!found?.isThere) return null;
  const [mark] = await read<MoveMark>("select move, role, place from move_mark where id = 1");
  return mark ?? null;
}

export async function writeMoveMark(tx: Transaction, { move, role, place }: MoveMark): Promise<void> {
  await tx.run("create table if not exists move_mark (id int primary key, move text, role text, place text)");
  await tx.run(
    `insert into move_mark (id, move, role, place) values (1, $1::text, $2::text, $3::text)
      on conflict (id) do update set move = excluded.move, role = excluded.role, place = excluded.place`,
    [move, role, place],
  );
}

/** See `refusalOf` of the mark itself. */
export const refusalOf = (mark: MoveMark | null): string | null =>
  refusalOfMark(
    mark,
    "this database",
    (place) => `start without POSTRIDER_DATABASE_URL, and with POSTRIDER_DATA_DIR=${place}`,
  );

/**
 * Whether a node may use this database. It abandons an unfinished move, since what is here will now differ from what was
 * copied.
 * @throws StartupError with what to do
 */
export async function heedMoveMark(pool: Pool): Promise<void> {
  const mark = await readMoveMark(pool);
  const refusal = refusalOf(mark);
  if (refusal !== null) throw new StartupError(refusal);
  if (mark !== null) await pool.write("drop table if exists move_mark");
}

/** For a server whose data was moved: it would begin with nothing. @throws StartupError when there are no tables yet */
export async function refuseEmpty({ read }: Pick<Pool, "read">, movedTo: string): Promise<void> {
  const [found] = await read<{ isThere: boolean }>(`select to_regclass('migration') is not null as "isThere"`);
  if (found?.isThere) return;
  throw new StartupError(
    `The data of this server was moved to ${movedTo}, but the database that POSTRIDER_DATABASE_URL names is empty; nothing was ` +
      "created in it. Try: correct the setting, or restore a dump first; to begin with nothing, set POSTRIDER_DATA_DIR to an empty folder.",
  );
}
