import { chmodSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { SQL } from "bun";
import { openDataDir } from "../../../../src/data-dir.ts";
import { systemClock } from "../../../../src/lib/clock.ts";
import { moveToPostgres } from "../../../../src/store/move/move.ts";
import { administer, startDurableServer } from "../../../support/postgres-server.ts";
import { say, showProgress } from "../output.ts";
import { startProduct } from "../servers.ts";
import { dataIn } from "./database.ts";

/** A history in a PostgreSQL of its own. */
export interface PostgresHistory {
  readonly url: string;
  bytes(): Promise<number>;
  /** Lets everything that is pending wait for its next try until then, ms since the Unix epoch. */
  postponeBacklog(until: number): Promise<void>;
  /** The slots of the nodes that nobody has declared dead. */
  nodes(): Promise<number>;
  remove(): Promise<void>;
}

const database = "scale";
/** A server with a history of gigabytes has more memory than the defaults; the rest are those. */
const settings = { shared_buffers: "1GB", max_wal_size: "4GB" };

/** Moves a seeded folder there, as `postrider move` does. The folder keeps the secrets. */
export async function moveHistory(folder: string, parent: string): Promise<PostgresHistory> {
  // The database's user may pass, to its own folder; what else is here is closed to it.
  chmodSync(parent, 0o711);
  const server = await startDurableServer(parent, settings);
  await administer(server, `create database ${database}`);
  const url = server.url(database);
  const startedMs = performance.now();
  const dataDir = openDataDir(dataIn(folder));
  try {
    const summary = await moveToPostgres({
      dataDir: dataDir.path,
      url,
      masterKey: dataDir.secrets.masterKey,
      clock: systemClock,
      signal: new AbortController().signal,
      onProgress: ({ what }) => showProgress(`moving: ${what}`),
    });
    const seconds = (performance.now() - startedMs) / 1000;
    say(
      `  moved                    ${(summary?.rows ?? 0).toLocaleString("en-GB")} rows in ${seconds.toFixed(0)} s, compared`,
    );
  } finally {
    dataDir.release();
  }
  const sql = new SQL(url, { max: 1 });
  const number = async (text: string) =>
    Number((await sql.unsafe<{ n: number }[]>(`select (${text})::float8 as n`))[0]?.n);
  return {
    url,
    bytes: () => number("pg_database_size(current_database())"),
    postponeBacklog: async (until) =>
      void (await sql.unsafe("update pending set next_attempt_at = $1::bigint", [until])),
    nodes: () => number("select count(*) from node"),
    async remove() {
      await sql.close();
      await server.remove();
    },
  };
}

/** The settings of a server on it, whose secrets are in the folder. */
export const settingsOf = (url: string | undefined): Record<string, string> =>
  url === undefined ? {} : { POSTRIDER_DATABASE_URL: url };

export interface RescueResult {
  /** From the death of a node until another one had taken what it owned. */
  rescuedMs: number;
}

const rescuePollMs = 20;
const workMs = 2_000;

/** Kills a node in the middle of its work, while another one lives that has been there for longer than a lease. */
export async function measureRescue(
  folder: string,
  source: boolean,
  history: PostgresHistory,
  leaseMs: number,
): Promise<RescueResult> {
  const other = join(folder, "other");
  mkdirSync(other, { mode: 0o700 });
  const env = {
    ...settingsOf(history.url),
    POSTRIDER_MASTER_KEY_FILE: join(dataIn(folder), "master-key"),
    POSTRIDER_NODE_NAME: "other",
  };
  const survivor = await startProduct({ dataDir: other, source, env });
  showProgress("rescue: a node watches for a lease");
  await Bun.sleep(leaseMs);
  const victim = await startProduct({ dataDir: folder, source, env: settingsOf(history.url) });
  await Bun.sleep(workMs);
  const startedMs = performance.now();
  await victim.kill();
  while ((await history.nodes()) > 1) await Bun.sleep(rescuePollMs);
  const rescuedMs = performance.now() - startedMs;
  await survivor.stop();
  return { rescuedMs };
}
