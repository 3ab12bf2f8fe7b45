import { Database, type SQLQueryBindings } from "bun:sqlite";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Clock } from "../../../../src/lib/clock.ts";
import { createKeyedLock } from "../../../../src/lib/keyed-lock.ts";
import { openStore } from "../../../../src/store/open.ts";
import { accountTables, nextTurn, type SimulatedStore } from "./simulated-store.ts";

type Row = Record<string, SQLQueryBindings>;

/** SQLite, in memory where the system has a folder for it: nothing here is about the disk. */
export async function openSqlite(clock: Clock): Promise<SimulatedStore> {
  const dataDir = mkdtempSync(join(existsSync("/dev/shm") ? "/dev/shm" : tmpdir(), "postrider-sim-"));
  let commits = 0;
  const onCommit = () => {
    commits += 1;
  };
  const { store } = await openStore({ dataDir, clock, pauses: false, onCommit });
  const client = new Database(join(dataDir, "postrider.db"), { readonly: true });
  const writer = new Database(join(dataDir, "postrider.db"), { readwrite: true });
  writer.run("pragma foreign_keys = off");

  function insert(table: string, row: Row): void {
    const names = Object.keys(row);
    const places = names.map(() => "?").join(", ");
    writer.query(`insert into ${table} (${names.join(", ")}) values (${places})`).run(...Object.values(row));
  }

  return {
    nodes: [store],
    lock: () => ({ ...createKeyedLock(), lose: async () => {} }),
    rows: async <Row>(statement: string, key: number) => client.query<Row, [number]>(statement).all(key),
    writes: () => commits,
    async backUp({ tenantKey, accountKey }) {
      const read = (sql: string, key: number) => writer.query<Row, [number]>(sql).all(key);
      const tenants = read("select * from tenant where key = ?1", tenantKey);
      const accounts = read("select * from billing_account where key = ?1", accountKey);
      const rows = accountTables.map((table) => read(`select * from ${table} where account_key = ?1`, accountKey));
      const write = writer.transaction(() => {
        for (const table of accountTables.toReversed())
          writer.query(`delete from ${table} where account_key = ?1`).run(accountKey);
        writer.query("delete from billing_account where key = ?1").run(accountKey);
        for (const { key, ...values } of tenants) {
          const names = Object.keys(values);
          const sets = names.map((name) => `${name} = ?`).join(", ");
          writer.query(`update tenant set ${sets} where key = ?`).run(...Object.values(values), key ?? 0);
        }
        for (const account of accounts) insert("billing_account", account);
        accountTables.forEach((table, i) => {
          for (const row of rows[i] ?? []) insert(table, row);
        });
      });
      return async () => void write.immediate();
    },
    goOn: nextTurn,
    async end() {
      client.close();
      writer.close();
      await store.close();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}
