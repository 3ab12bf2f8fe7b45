import { Database } from "bun:sqlite";
import { createHash } from "node:crypto";

/** What every table holds, row by row, as a digest; the replicator's own tables are left out. */
export function digestsOf(path: string): Map<string, string> {
  const client = new Database(path, { readonly: true, strict: true });
  try {
    const tables = client
      .query<{ name: string }, []>(
        "select name from sqlite_schema where type = 'table' and name not like '\\_%' escape '\\'",
      )
      .all();
    return new Map(
      tables.map(({ name }) => {
        const hash = createHash("sha256");
        let rows = 0;
        for (const row of client.query<Record<string, unknown>, []>(`select * from ${name}`).iterate()) {
          hash.update(JSON.stringify(row));
          rows += 1;
        }
        return [name, `${rows} rows, ${hash.digest("hex").slice(0, 16)}`];
      }),
    );
  } finally {
    client.close();
  }
}
