import type { Database } from "bun:sqlite";

/** What a database holds, counted. */
export interface Books {
  /** Rows of each table, by name. */
  readonly tables: Readonly<Record<string, number>>;
  readonly events: number;
  /** Deliveries that have not ended. */
  readonly pending: number;
  readonly accounts: number;
}

export function readBooks(client: Database): Books {
  const tables = client
    .query<{ name: string }, []>(
      "select name from sqlite_schema where type = 'table' and name not like 'sqlite%' order by name",
    )
    .all()
    // The names come from the schema.
    .map(({ name }) => [name, countOf(client, `select count(*) as n from "${name.replaceAll('"', '""')}"`)] as const);
  const rows = Object.fromEntries(tables);
  return {
    tables: rows,
    events: rows.event ?? 0,
    pending: "delivery" in rows ? countOf(client, "select count(*) as n from delivery where state = 0") : 0,
    accounts: rows.tenant ?? 0,
  };
}

/** The statement is let go at once: of cached ones there is a limit, and an open one would keep its connection open. */
function countOf(client: Database, sql: string): number {
  using statement = client.prepare<{ n: number }, []>(sql);
  return statement.get()?.n ?? 0;
}

/** Where two books of the same moment differ, in words; nothing when they agree. */
export function compareBooks(said: Books, found: Books): string[] {
  const names = [...new Set([...Object.keys(said.tables), ...Object.keys(found.tables)])].sort();
  const differing = names.filter((name) => said.tables[name] !== found.tables[name]);
  return [
    ...differing.map(
      (name) =>
        `table ${name} has ${found.tables[name] ?? "no"} rows, and the manifest says ${said.tables[name] ?? "none"}`,
    ),
    ...(said.pending === found.pending
      ? []
      : [`${found.pending} deliveries are pending, and the manifest says ${said.pending}`]),
  ];
}
