import { Database } from "bun:sqlite";
import { test } from "bun:test";
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SQL } from "bun";
import type { AppDeps } from "../../src/app.ts";
import { databaseFile } from "../../src/store/sqlite/open.ts";
import { copyDatabase, createStartedDatabase, type TestDatabase } from "./postgres.ts";
import { backendVariable } from "./postgres-server.ts";

/**
 * The data of test servers, by folder: with `BACKEND_UNDER_TEST=postgres` it is in a PostgreSQL database that belongs to
 * the folder, otherwise in the folder.
 */
const backend = process.env[backendVariable] ?? "sqlite";
if (backend !== "sqlite" && backend !== "postgres") throw new Error(`${backendVariable} is sqlite or postgres`);

export const isOnPostgres = backend === "postgres";

/** For tests that depend on a file: its bytes, its pages, and the disk that it fills. */
export const testOnSqlite = isOnPostgres ? test.skip : test;

const databases = new Map<string, TestDatabase>();

export interface ServerData {
  env: Record<string, string>;
  deps: Pick<AppDeps, "durability">;
}

/** The settings with which a server finds what the last one of this folder left. */
export async function dataOf(folder: string): Promise<ServerData> {
  if (!isOnPostgres) return { env: {}, deps: {} };
  const database = databases.get(folder) ?? (await createStartedDatabase(Date.now()));
  databases.set(folder, database);
  return { env: { POSTRIDER_DATABASE_URL: database.url }, deps: { durability: "waived" } };
}

/** A folder with everything that this folder's server left; that server must not be running. */
export async function copyData(folder: string): Promise<string> {
  const copy = mkdtempSync(join(tmpdir(), "postrider-copy-"));
  cpSync(folder, copy, { recursive: true });
  const database = databases.get(folder);
  if (database) databases.set(copy, await copyDatabase(database));
  return copy;
}

export async function removeData(folder: string): Promise<void> {
  rmSync(folder, { recursive: true, force: true });
  const database = databases.get(folder);
  databases.delete(folder);
  await database?.remove();
}

type Folder = { readonly dataDir: string };

/**
 * Queries a server's data, for what no interface shows. Numbers to be compared are cast to `int`: PostgreSQL returns
 * larger ones as text.
 */
export async function look<Row>({ dataDir }: Folder, query: string): Promise<Row[]> {
  const database = databases.get(dataDir);
  if (database) return askDatabase<Row>(database.url, query);
  const file = new Database(join(dataDir, databaseFile), { readonly: true });
  try {
    return file.query<Row, []>(query).all();
  } finally {
    file.close();
  }
}

/** Changes a server's data, for states that take years or money to reach. */
export async function edit({ dataDir }: Folder, statement: string): Promise<void> {
  const database = databases.get(dataDir);
  if (database) return void (await askDatabase(database.url, statement));
  const file = new Database(join(dataDir, databaseFile));
  file.run(statement);
  file.close();
}

/** What other nodes have to hear. The janitor removes it when all of them have. */
const newsTable = "change";

/** Everything that is stored there, to search for what must not be. */
export async function keptTexts({ dataDir }: Folder): Promise<{ name: string; text: string }[]> {
  if (!isOnPostgres) {
    const files = readdirSync(dataDir).filter((name) => name.startsWith(databaseFile));
    return files.map((name) => ({ name, text: readFileSync(join(dataDir, name)).toString("latin1") }));
  }
  const tables = await look<{ name: string }>(
    { dataDir },
    `select tablename as name from pg_tables where schemaname = 'public' and tablename <> '${newsTable}'`,
  );
  return Promise.all(
    tables.map(async ({ name }) => {
      const rows = await look<{ text: string }>(
        { dataDir },
        `select encode(convert_to(t::text, 'UTF8'), 'escape') as text from "${name}" t`,
      );
      return { name, text: rows.map(({ text }) => text).join("\n") };
    }),
  );
}

async function askDatabase<Row>(url: string, query: string): Promise<Row[]> {
  const sql = new SQL(url, { max: 1 });
  try {
    return [...(await sql.unsafe<Row[]>(query))];
  } finally {
    await sql.close();
  }
}
