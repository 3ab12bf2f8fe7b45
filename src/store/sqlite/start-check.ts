import type { Database } from "bun:sqlite";
import { isWhole, unlessDamaged } from "./damage.ts";

/**
 * Checks the database before it is used, at a cost that does not grow with the history: the schema, every small table with
 * its indexes (`quick_check`), and the newest pages of the large ones, into which the next rows are written. Damage further
 * back is noticed when it is read, and affects nothing else.
 *
 * @returns in words, what is too damaged for the server to work with; null when nothing is
 */
export function findDamage(client: Database, warn: (message: string) => void): string | null {
  if (unlessDamaged(() => client.query("select count(*) from sqlite_schema").get()) === null) return "its schema";
  const tables = client
    .query<{ name: string }, []>("select name from sqlite_schema where type = 'table' and name not like 'sqlite%'")
    .all();
  for (const { name } of tables) {
    const isHistory = histories.has(name) || !isSmall(client, name);
    const fault = isHistory ? newestRow(client, name) : quickCheck(client, name);
    if (fault !== null) return fault;
  }
  if (!tables.some(({ name }) => name === "delivery")) return null;
  if (unlessDamaged(() => client.query(queueOfDue).all()) === null) return "the index of what is due";
  warnOfEvents(client, warn);
  return null;
}

/** This many rows are read in about 10 ms. */
const smallTableRows = 20_000;
const newestEvents = 100;
/** Within an index, takes 10 ms. */
const queueOfDue = "select webhook_key from delivery where state = 0 order by webhook_key, next_attempt_at limit 50000";

/** Judged by its highest row number, which is found without a scan; also false when that cannot be read. */
const isSmall = (client: Database, table: string): boolean =>
  (unlessDamaged(() => client.query<{ n: number | null }, []>(`select max(rowid) as n from ${table}`).get()?.n ?? 0) ??
    Number.POSITIVE_INFINITY) <= smallTableRows;

function quickCheck(client: Database, table: string): string | null {
  const found = unlessDamaged(() =>
    client.query<{ quick_check: string }, []>(`pragma quick_check(${table})`).values().flat().join("; "),
  );
  return found === "ok" ? null : `table ${table}${found ? `: ${found.replaceAll(/\s+/g, " ").slice(0, 200)}` : ""}`;
}

/** Tables in which damage further back than the newest row stops nothing, however few rows they have. */
const histories: ReadonlySet<string> = new Set([
  "event",
  "delivery",
  "attempt",
  "stat",
  "webhook_stat",
  "idempotency",
  "inbox_delivery",
]);

const newestRow = (client: Database, table: string): string | null =>
  unlessDamaged(() => client.query(`select rowid from ${table} order by rowid desc limit 1`).all()) === null
    ? `the newest page of table ${table}`
    : null;

/** The latest events are the ones that still wait: known losses among them are reported before anybody asks. */
function warnOfEvents(client: Database, warn: (message: string) => void): void {
  const has = client.query("select 1 from pragma_table_info('event') where name = 'checksum'").get() !== null;
  const newest = unlessDamaged(() =>
    client.query<{ seq: number }, []>(`select seq from event order by seq desc limit ${newestEvents}`).all(),
  );
  const payloadOf = client.prepare<{ payload: Uint8Array; checksum: number | null }, [number]>(
    `select payload, ${has ? "checksum" : "null as checksum"} from event where seq = ?1`,
  );
  const damaged = newest?.filter(({ seq }) => {
    const row = unlessDamaged(() => payloadOf.get(seq));
    return !row || !isWhole(row.payload, row.checksum);
  });
  if (newest !== null && damaged?.length === 0) return;
  const many = newest === null ? "Some" : `${damaged?.length}`;
  warn(
    `${many} of the latest ${newestEvents} events cannot be read: their pages in the database are damaged. ` +
      "The others are served. Try: restore the database from a backup.",
  );
}
