import { Database } from "bun:sqlite";
import { afterEach, beforeEach, expect, test } from "bun:test";
import { join } from "node:path";
import type { Tenant } from "../../../src/domain/tenant.ts";
import { databaseFile } from "../../../src/store/sqlite/open.ts";
import { openSqliteStore } from "../../../src/store/sqlite/store.ts";
import type { Store } from "../../../src/store/store.ts";
import { createFakeClock } from "../../support/fake-clock.ts";
import { useSqlite } from "../../support/sqlite-store.ts";
import { bytes, latestKey, newTenant, settlementOf, untyped } from "../../support/store-factory.ts";

const sqlite = useSqlite();
const clock = createFakeClock();
let dataDir = "";
let store: Store;
let tenant: Tenant;
beforeEach(async () => {
  dataDir = sqlite.emptyDir();
  store = openSqliteStore({ dataDir, clock, secondThread: false, pauses: false }).store;
  tenant = await store.createTenant(newTenant({ urls: ["https://a.example/hook"] }), clock.now());
});
afterEach(() => store.close());

/** What the tables of events and their indexes take on disk. */
function onDisk(): number {
  const client = new Database(join(dataDir, databaseFile), { readonly: true });
  const { n } = client
    .query<{ n: number }, []>(
      `select sum(pgsize) as n from dbstat where name in
         (select name from sqlite_schema where tbl_name in ('event', 'delivery', 'attempt'))`,
    )
    .get() ?? { n: 0 };
  client.close();
  return n;
}

async function fill(count: number, payloadOf: (i: number) => number, answer: number): Promise<void> {
  const apiKeyId = await latestKey(store, tenant.key);
  for (let i = 0; i < count; i += 100) {
    const events = Array.from({ length: 100 }, (_, n) => untyped(bytes(`{"a":"${"x".repeat(payloadOf(i + n))}"}`)));
    const roomFor = () => 100;
    const { deliveries } = await store.acceptEvents({ tenantKey: tenant.key, apiKeyId, events, roomFor });
    await Promise.all(
      deliveries.map((delivery, n) => {
        const outcome = n % 10 === 0 ? "failed" : "delivered";
        return store.settle(settlementOf(delivery, outcome, clock.now(), { answer: "y".repeat(answer) }));
      }),
    );
    clock.advance(100);
  }
}

test.each<[string, (i: number) => number, number]>([
  ["small payloads and no answers", () => 290, 0],
  ["answers of a kilobyte", () => 290, 1_000],
  ["answers of 4 KiB", () => 290, 4_096],
  ["payloads of all sizes", (i) => 50 + ((i * 7_919) % 9_000), 20],
])("what an account takes is what dbstat says, within 5 %%: %s", async (_, payloadOf, answer) => {
  await fill(1_500, payloadOf, answer);
  const said = await store.storageOf(tenant.key);
  const measured = onDisk();
  expect(Math.abs(said / measured - 1), `${said} of ${measured}`).toBeLessThan(0.05);
});
