import { Database } from "bun:sqlite";
import { drizzle } from "drizzle-orm/bun-sqlite";
import { createQueries, type Queries } from "./queries.ts";
import type { ReaderAnswer, ReaderRequest } from "./reader.ts";

/** The other end of `reader.ts`: the first message names the database, every further one is a query. */
declare const self: Worker;

let queries: Queries | null = null;

self.onmessage = ({ data }: MessageEvent<{ databasePath: string } | ReaderRequest>) => {
  if ("databasePath" in data) {
    const client = new Database(data.databasePath, { readonly: true, strict: true });
    // A reader never waits for the writer in WAL mode; this is for the moment in which the log is reset.
    client.run("pragma busy_timeout = 5000");
    queries = createQueries(drizzle({ client }));
    return;
  }
  self.postMessage(answer(data));
};

function answer({ id, name, params }: ReaderRequest): ReaderAnswer {
  try {
    const query = queries?.[name] as ((params: unknown) => unknown) | undefined;
    if (!query) throw new Error(`There is no query "${name}"`);
    return { id, result: query(params) };
  } catch (error) {
    return { id, error: error instanceof Error ? error.message : String(error) };
  }
}
