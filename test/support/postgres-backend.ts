import { SQL } from "bun";
import { openPostgresStore } from "../../src/store/postgres/store.ts";
import { createStartedDatabase } from "./postgres.ts";
import type { StoreBackend } from "./store-backend.ts";

/** Tables of the backend itself; each of the others holds one kind of thing. */
const ownTables: readonly string[] = [
  "node",
  "lane",
  "job",
  "change",
  "change_head",
  "vault_check",
  "migration",
  "erased_tenant",
  "replay_count",
  "limit_window",
  "stream_head",
  "stream_message",
  "stream_watch",
];

/** Tables that hold the same kind of thing: a record is in one of them while it waits. */
const kindOf: Readonly<Record<string, string>> = { pending: "delivery" };

/** Leases and pauses follow the machine's clock, because a test's clock may travel for years. */
export const postgresBackend: StoreBackend = {
  name: "PostgreSQL",
  async open(options) {
    const { url, remove } = await createStartedDatabase(options.clock.now());
    const openAgain = () => openPostgresStore({ url, durability: "waived", ...options });
    const edit = async (statement: string) => {
      const sql = new SQL(url, { max: 1 });
      await sql.unsafe(statement);
      await sql.close();
    };
    return { ...(await openAgain()), reopen: openAgain, count: () => countRows(url), edit, remove };
  },
};

async function countRows(url: string): Promise<Record<string, number>> {
  const sql = new SQL(url, { max: 1 });
  try {
    const tables: { name: string }[] = await sql`
      select relname as name from pg_class join pg_namespace on pg_namespace.oid = relnamespace
      where nspname = 'public' and relkind in ('r', 'p') and not relispartition`;
    const counts: Record<string, number> = {};
    for (const { name } of tables.filter((table) => !ownTables.includes(table.name))) {
      const [row] = await sql.unsafe<{ n: number }[]>(`select count(*)::int as n from "${name}"`);
      const kind = kindOf[name] ?? name;
      counts[kind] = (counts[kind] ?? 0) + (row?.n ?? 0);
    }
    return counts;
  } finally {
    await sql.close();
  }
}
