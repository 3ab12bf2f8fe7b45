import { Database } from "bun:sqlite";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { databaseFile } from "../../src/store/sqlite/open.ts";
import { openSqliteStore } from "../../src/store/sqlite/store.ts";
import { putEmptyDatabase } from "./empty-database.ts";
import { takeReaderThread } from "./kept-reader.ts";
import type { StoreBackend } from "./store-backend.ts";

/** Tables of the backend itself; each of the others holds one kind of thing. */
const ownTables: readonly string[] = ["lane", "vault_check", "written_by"];

export const sqliteBackend: StoreBackend = {
  name: "SQLite",
  async open(options) {
    const dataDir = mkdtempSync(join(tmpdir(), "postrider-store-"));
    await putEmptyDatabase(dataDir);
    const openAgain = async () => openSqliteStore({ dataDir, startThread: takeReaderThread, ...options });
    return {
      ...(await openAgain()),
      reopen: openAgain,
      count: async () => countRows(join(dataDir, databaseFile)),
      edit: async (statement) => {
        const client = new Database(join(dataDir, databaseFile));
        client.run(statement);
        client.close();
      },
      remove: async () => rmSync(dataDir, { recursive: true }),
    };
  },
};

function countRows(path: string): Record<string, number> {
  const client = new Database(path, { readonly: true });
  const tables = client
    .query<{ name: string }, []>("select name from sqlite_schema where type = 'table' and name not like 'sqlite%'")
    .all()
    .filter(({ name }) => !ownTables.includes(name));
  const rows = tables.map(({ name }) => [name, client.query(`select 1 from ${name}`).all().length] as const);
  client.close();
  return Object.fromEntries(rows);
}
