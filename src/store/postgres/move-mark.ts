import { StartupError } from "../../domain/errors.ts";
import type { MoveMark } from "../move-mark.ts";
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

/** Why no node may use a database with this mark, with what to do; null: its data is here. */
export function refusalOf(mark: MoveMark | null): string | null {
  switch (mark?.role) {
    case undefined:
    case "leaving":
      return null;
    case "left":
      return (
        `The data of this database was moved to ${mark.place}, and nothing here is of use any more. Try: start without ` +
        `POSTRIDER_DATABASE_URL, and with POSTRIDER_DATA_DIR=${mark.place}.`
      );
    case "arriving":
      return `The move from ${mark.place} to this database has not ended. Try: run postrider move again, which goes on with it.`;
  }
}

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
