import type { Database } from "bun:sqlite";
import { StartupError } from "../../domain/errors.ts";

/**
 * What moving the data to another place leaves in the database. The table exists only then, so it is not part of any migration.
 *
 *   leaving   the database is being copied, or was until somebody stopped that
 *   left      the copy is complete: what is here is obsolete
 *   arriving  the database is the copy, and not yet complete
 */
export interface MoveMark {
  readonly move: string;
  readonly role: "leaving" | "left" | "arriving";
  /** The other place. */
  readonly place: string;
}

export function readMoveMark(client: Database): MoveMark | null {
  const hasTable = client.query("select 1 from sqlite_schema where type = 'table' and name = 'move_mark'").get();
  return hasTable ? client.query<MoveMark, []>("select move, role, place from move_mark").get() : null;
}

export function writeMoveMark(client: Database, { move, role, place }: MoveMark): void {
  client.transaction(() => {
    client.run("create table if not exists move_mark (id integer primary key, move text, role text, place text)");
    client.run("insert or replace into move_mark (id, move, role, place) values (1, ?1, ?2, ?3)", [move, role, place]);
  })();
}

/**
 * Checks whether a server may use the database. Doing so abandons an unfinished move, since the data here will differ from
 * what was copied.
 * @throws StartupError with what to do
 */
export function heedMoveMark(client: Database, path: string): void {
  const mark = readMoveMark(client);
  if (mark === null) return;
  if (mark.role === "leaving") {
    client.run("drop table move_mark");
    return;
  }
  throw new StartupError(
    mark.role === "left"
      ? `The data of ${path} was moved to ${mark.place}, and nothing here is of use any more. Try: set POSTRIDER_DATABASE_URL ` +
          "to that database; to go back with all that it has by now, run postrider move --to sqlite:DIR."
      : `The move to ${path} from ${mark.place} has not ended. Try: run postrider move again, which goes on with it.`,
  );
}

export const begunByEarlier = (place: string) =>
  new StartupError(
    `The move to ${place} was begun by an earlier Postrider. Try: end it with that one, or empty ${place} and begin again.`,
  );
