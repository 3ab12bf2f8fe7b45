import { SQL } from "bun";
import type { Clock } from "../../../../src/lib/clock.ts";
import { newToken } from "../../../../src/lib/id.ts";
import { openPostgresStore } from "../../../../src/store/postgres/store.ts";
import { administer, sharedServer } from "../../../support/postgres-server.ts";
import { accountTables, type SimulatedStore } from "./simulated-store.ts";

/** PostgreSQL, in a database of its own. */
export async function openPostgres(clock: Clock): Promise<SimulatedStore> {
  const server = await sharedServer();
  const name = `postrider_sim_${newToken(60)}`;
  await administer(server, `create database ${name}`);
  const url = server.url(name);
  const { store } = await openPostgresStore({ url, clock, durability: "waived" });
  const sql = new SQL(url, { max: 3 });
  /** As JSON, in which numbers are numbers. */
  const asJson = async (statement: string, key: number): Promise<string[]> => {
    const found: { row: string }[] = await sql.unsafe(`select row_to_json(r)::text as row from (${statement}) r`, [
      key,
    ]);
    return found.map(({ row }) => row);
  };
  let looks = 0;

  return {
    store,
    async rows<Row>(statement: string, key: number) {
      const own = statement.replaceAll("?1", "$1::bigint").replace(/ as (\w+)/g, ' as "$1"');
      return (await asJson(own, key)).map((row): Row => JSON.parse(row));
    },
    writes() {
      looks += 1;
      return looks;
    },
    async backUp({ tenantKey, accountKey }) {
      const [tenant = "{}"] = await asJson("select * from tenant where key = $1::bigint", tenantKey);
      const accounts = await asJson("select * from billing_account where key = $1::bigint", accountKey);
      const rows = await Promise.all(
        accountTables.map((table) => asJson(`select * from ${table} where account_key = $1::bigint`, accountKey)),
      );
      // What nodes have read of it is overtaken all the same.
      const columns = Object.keys(JSON.parse(tenant)).filter((column) => column !== "key" && column !== "version");
      return () =>
        sql.begin(async (tx) => {
          const insert = (table: string, row: string) =>
            tx.unsafe(`insert into ${table} select * from json_populate_record(null::${table}, $1::text::json)`, [row]);
          for (const table of accountTables.toReversed())
            await tx.unsafe(`delete from ${table} where account_key = $1::bigint`, [accountKey]);
          await tx.unsafe("delete from billing_account where key = $1::bigint", [accountKey]);
          const sets = columns.map((column) => `${column} = r.${column}`).join(", ");
          const given = "json_populate_record(null::tenant, $1::text::json) r";
          await tx.unsafe(`update tenant set ${sets} from ${given} where tenant.key = r.key`, [tenant]);
          for (const account of accounts) await insert("billing_account", account);
          for (const [i, table] of accountTables.entries()) for (const row of rows[i] ?? []) await insert(table, row);
        });
    },
    // Turn after turn would take from the server what it needs to answer.
    goOn: () => Bun.sleep(1),
    async end() {
      await sql.close();
      await store.close();
      await administer(server, `drop database ${name} with (force)`);
    },
  };
}
