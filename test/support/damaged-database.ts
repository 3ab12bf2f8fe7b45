import { Database } from "bun:sqlite";
import { closeSync, openSync, writeSync } from "node:fs";
import { join } from "node:path";
import { databaseFile } from "../../src/store/sqlite/open.ts";

export type PageType = "leaf" | "internal" | "overflow";

/** Pages of a table or index in the database of a stopped server, from the oldest key to the newest. */
export function pagesOf(dataDir: string, name: string, type: PageType): number[] {
  const client = new Database(join(dataDir, databaseFile));
  client.run("pragma wal_checkpoint(truncate)");
  const pages = client
    .query<{ pageno: number }, [string, string]>(
      "select pageno from dbstat where name = ?1 and pagetype = ?2 order by path",
    )
    .all(name, type);
  client.close();
  return pages.map(({ pageno }) => pageno);
}

/** Overwrites whole pages, like a disk that loses a sector, or a tool that writes to the wrong place. */
export function overwritePages(dataDir: string, pages: readonly number[], byte = 0xa5): void {
  const client = new Database(join(dataDir, databaseFile), { readonly: true });
  const { size } = client.query<{ size: number }, []>("select page_size as size from pragma_page_size").get() ?? {
    size: 0,
  };
  client.close();
  const file = openSync(join(dataDir, databaseFile), "r+");
  for (const page of pages) writeSync(file, Buffer.alloc(size, byte), 0, size, (page - 1) * size);
  closeSync(file);
}
