import type { Database, SQLQueryBindings } from "bun:sqlite";
import type { Store } from "../../../../src/store/store.ts";
import type { OwnAccount } from "./own-account.ts";

type Row = Record<string, SQLQueryBindings>;

const tables = ["card_verification", "saved_card", "plan_period", "invoice", "invoice_day", "charge"] as const;

/** What the database knows of one account, to be put back later; the others in it live at other times. */
export function createBackup(writer: Database, own: OwnAccount) {
  const accountKey = own.accountKey();
  const read = (sql: string, key: number) => writer.query<Row, [number]>(sql).all(key);
  const tenants = read("select * from tenant where key = ?1", own.tenantKey());
  const accounts = read("select * from billing_account where key = ?1", accountKey);
  const rows = tables.map((table) => read(`select * from ${table} where account_key = ?1`, accountKey));

  const insert = (table: string, row: Row) => {
    const names = Object.keys(row);
    const places = names.map(() => "?").join(", ");
    writer.query(`insert into ${table} (${names.join(", ")}) values (${places})`).run(...Object.values(row));
  };

  const write = writer.transaction(() => {
    writer.run("pragma defer_foreign_keys = on");
    for (const table of tables.toReversed())
      writer.query(`delete from ${table} where account_key = ?1`).run(accountKey);
    writer.query("delete from billing_account where key = ?1").run(accountKey);
    for (const { key, ...values } of tenants) {
      const names = Object.keys(values);
      const sets = names.map((name) => `${name} = ?`).join(", ");
      writer.query(`update tenant set ${sets} where key = ?`).run(...Object.values(values), key ?? 0);
    }
    for (const account of accounts) insert("billing_account", account);
    tables.forEach((table, i) => {
      for (const row of rows[i] ?? []) insert(table, row);
    });
  });

  return {
    async putBack(store: Store): Promise<void> {
      writer.run("pragma foreign_keys = off");
      write.immediate();
      // What the store has kept of the tenant is of the time after the backup: what changes it in any case has it read anew.
      await store.endAllSessions(own.tenantKey());
    },
  };
}
