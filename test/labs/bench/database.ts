import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { administer, type OwnServer, startDurableServer } from "../../support/postgres-server.ts";
import { type Server, startProduct } from "./servers.ts";

/** Of the database's server: enough memory that it is the processors that are measured. */
export const databaseSettings = { shared_buffers: "512MB", min_wal_size: "1GB", max_wal_size: "1GB" };
const databaseName = "bench";
/** Of 16 MB, as many as it keeps. */
const logSegments = 60;

export interface Database {
  server: OwnServer;
  url: string;
}

export async function startDatabase(folder: string): Promise<Database> {
  const server = await startDurableServer(folder, databaseSettings);
  await administer(server, `create database ${databaseName}`);
  await recycleLog(server);
  return { server, url: server.url(databaseName) };
}

/**
 * A server that has run for a while writes its log into files that it has already; a new one has to fill each with zeros
 * first, and every commit waits for that.
 */
async function recycleLog(server: OwnServer): Promise<void> {
  for (let i = 0; i < logSegments; i++) {
    await administer(server, "select pg_switch_wal() from pg_logical_emit_message(true, 'bench', 'fill')");
  }
  await administer(server, "checkpoint");
}

export interface NodeWish {
  folder: string;
  name: string;
  source: boolean;
  /** Without one it is on SQLite. */
  databaseUrl?: string;
}

const masterKey = "17".repeat(32);

export async function startNode({ folder, name, source, databaseUrl }: NodeWish): Promise<Server> {
  const dataDir = join(folder, name);
  mkdirSync(dataDir, { mode: 0o700 });
  const keyFile = join(dataDir, "master-key");
  writeFileSync(keyFile, masterKey, { mode: 0o600 });
  const env = databaseUrl && {
    POSTRIDER_DATABASE_URL: databaseUrl,
    POSTRIDER_MASTER_KEY_FILE: keyFile,
    POSTRIDER_NODE_NAME: name,
  };
  return startProduct({ dataDir, source, ...(env && { env }) });
}
