import { SQL } from "bun";
import { type Clock, systemClock } from "../../../../src/lib/clock.ts";
import { newToken } from "../../../../src/lib/id.ts";
import { createBillingLock } from "../../../../src/store/postgres/billing-lock.ts";
import { createPool } from "../../../../src/store/postgres/pool.ts";
import { openPostgresStore } from "../../../../src/store/postgres/store.ts";
import type { Store } from "../../../../src/store/store.ts";
import { administer, sharedServer } from "../../../support/postgres-server.ts";
import { accountTables, type SimulatedStore } from "./simulated-store.ts";

/** Verbs that leave everything as it was. */
const reads = new Set<PropertyKey>([
  "billingAccountOf",
  "books",
  "findCharge",
  "findTenant",
  "findVerification",
  "oldestWaitingWriteMs",
  "planDays",
] satisfies (keyof Store)[]);

/** Between looks whether an account is free many things happen: with the machine's pauses nothing else would be done. */
const longerPauses = 20;

/** PostgreSQL, in a database of its own, with two nodes. */
export async function openPostgres(clock: Clock): Promise<SimulatedStore> {
  const server = await sharedServer();
  const name = `postrider_sim_${newToken(60)}`;
  await administer(server, `create database ${name}`);
  const url = server.url(name);
  let writes = 0;
  /** Counts what may have changed something, once it is over. */
  const counted = (store: Store) =>
    new Proxy(store, {
      get(target, name) {
        const verb: unknown = Reflect.get(target, name);
        if (typeof verb !== "function" || reads.has(name)) return verb;
        return (...args: unknown[]) => {
          const done: unknown = Reflect.apply(verb, target, args);
          if (!(done instanceof Promise)) return done;
          return done.finally(() => {
            writes += 1;
          });
        };
      },
    });
  const open = async () => counted((await openPostgresStore({ url, clock, durability: "waived" })).store);
  // The second one finds the schema made.
  const nodes = [await open(), await open()] as const;
  const pool = createPool({ url, size: 2, clock: systemClock });
  let incarnation = 0;
  const sql = new SQL(url, { max: 3 });
  /** As JSON, in which numbers are numbers. */
  const asJson = async (statement: string, key: number): Promise<string[]> => {
    const found: { row: string }[] = await sql.unsafe(`select row_to_json(r)::text as row from (${statement}) r`, [
      key,
    ]);
    return found.map(({ row }) => row);
  };

  return {
    nodes,
    lock({ life, clock, onFailure }) {
      incarnation += 1;
      const node = { incarnation };
      const lock = createBillingLock({
        pool: life.mortal(pool),
        clock: { ...clock, after: (delayMs, callback) => clock.after(delayMs * longerPauses, callback) },
        node: () => node,
        onFailure,
      });
      return {
        ...lock,
        async lose() {
          await pool.write("update billing_account set leased_until = '-infinity' where leased_by = $1::int", [
            node.incarnation,
          ]);
        },
      };
    },
    async rows<Row>(statement: string, key: number) {
      const own = statement.replaceAll("?1", "$1::bigint").replace(/ as (\w+)/g, ' as "$1"');
      return (await asJson(own, key)).map((row): Row => JSON.parse(row));
    },
    writes: () => writes,
    async backUp({ tenantKey, accountKey }) {
      const [tenant = "{}"] = await asJson("select * from tenant where key = $1::bigint", tenantKey);
      const accounts = await asJson("select * from billing_account where key = $1::bigint", accountKey);
      const rows = await Promise.all(
        accountTables.map((table) => asJson(`select * from ${table} where account_key = $1::bigint`, accountKey)),
      );
      // What nodes have read of it is overtaken all the same.
      const columns = Object.keys(JSON.parse(tenant)).filter((column) => column !== "key" && column !== "version");
      return async () => {
        await sql.begin(async (tx) => {
          const insert = (table: string, row: string) =>
            tx.unsafe(`insert into ${table} select * from json_populate_record(null::${table}, $1::text::json)`, [row]);
          for (const table of accountTables.toReversed())
            await tx.unsafe(`delete from ${table} where account_key = $1::bigint`, [accountKey]);
          await tx.unsafe("delete from billing_account where key = $1::bigint", [accountKey]);
          const sets = columns.map((column) => `${column} = r.${column}`).join(", ");
          const given = "json_populate_record(null::tenant, $1::text::json) r";
          await tx.unsafe(`update tenant set ${sets} from ${given} where tenant.key = r.key`, [tenant]);
          // A backup is older than any lease.
          const free = { leased_by: null, leased_until: null };
          for (const account of accounts)
            await insert("billing_account", JSON.stringify({ ...JSON.parse(account), ...free }));
          for (const [i, table] of accountTables.entries()) for (const row of rows[i] ?? []) await insert(table, row);
        });
        writes += 1;
      };
    },
    // Turn after turn would take from the server what it needs to answer.
    goOn: () => Bun.sleep(1),
    async end() {
      await Promise.all([sql.close(), pool.close(), ...nodes.map((store) => store.close())]);
      await administer(server, `drop database ${name} with (force)`);
    },
  };
}
