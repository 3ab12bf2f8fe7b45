import type { Database } from "bun:sqlite";
import { StartupError } from "../../domain/errors.ts";
import { type MoveMark, refusalOf as refusalOfMark } from "../move-mark.ts";

/** Its statements are let go at once: an open one would keep its connection, and so the log, from closing. */
export function readMoveMark(client: Database): MoveMark | null {
  using table = client.prepare("select 1 from sqlite_schema where type = 'table' and name = 'move_mark'");
  if (table.get() === null) return null;
  using mark = client.prepare<MoveMark, []>("select move, role, place from move_mark");
  return mark.get();
}

export function writeMoveMark(client: Database, { move, role, place }: MoveMark): void {
  client.transaction(() => {
    client.run("create table if not exists move_mark (id integer primary key, move text, role text, place text)");
    client.run("insert or replace into move_mark (id, move, role, place) values (1, ?1, ?2, ?3)", [move, role, place]);
  })();
}

/** See `refusalOf` of the mark itself. */
export const refusalOf = (mark: MoveMark | null, path: string): string | null =>
  refusalOfMark(
    mark,
    path,
    () =>
      "set POSTRIDER_DATABASE_URL to that database; to go back with all that it has by now, run postrider move --to sqlite:DIR",
  );

/** @throws StartupError when the data is elsewhere, with what to do */
export function refuseMoved(client: Database, path: string): void {
  const refusal = refusalOf(readMoveMark(client), path);
  if (refusal !== null) throw new StartupError(refusal);
}

/**
 * Checks whether a server may use the database. Doing so abandons an unfinished move, since the data here will differ from
 * what was copied.
 * @throws as `refuseMoved`
 */
export function heedMoveMark(client: Database, path: string): void {
  refuseMoved(client, path);
  client.run("drop table if exists move_mark");
}

export const begunByEarlier = (place: string) =>
  new StartupError(
    `The move to ${place} was begun by an earlier Postrider. Try: end it with that one, or empty ${place} and begin again.`,
  );
