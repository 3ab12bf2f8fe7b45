import { expect, test } from "bun:test";
import { systemClock } from "../../../src/lib/clock.ts";
import { openPostgresStore } from "../../../src/store/postgres/store.ts";
import { describeWithPostgres, usePostgres } from "../../support/postgres.ts";
import { newTenant } from "../../support/store-factory.ts";

const minute = 5;
const counts = { accepted: 0, delivered: 0, failed: 0, attempts: 0 };

describeWithPostgres("statistics of a node", () => {
  const postgres = usePostgres();

  async function open() {
    const url = await postgres.migrated();
    const { store } = await openPostgresStore({ url, clock: systemClock, durability: "waived" });
    postgres.cleanUpFirst(() => store.close());
    const { key: tenantKey } = await store.createTenant(newTenant(), systemClock.now());
    const pool = postgres.pool(url);
    return {
      pool,
      add: (at: number, ...latency: [bucket: number, count: number][]) =>
        store.addStats([{ ...counts, tenantKey, minute: at, attempts: latency.length, latency: new Map(latency) }]),
      async thin() {
        while (await store.thinStats(31 * 86_400_000));
      },
      rows: () => pool.read("select minute, attempts, latency from stat order by minute"),
    };
  }

  test("are added up, whichever minute they are of", async () => {
    const { add, rows } = await open();
    await add(minute, [3, 1], [7, 2]);
    await add(minute, [7, 1], [1, 1]);
    await add(minute + 1, [7, 1]);
    await add(minute, [3, 1]);
    await add(minute + 1, [9, 4]);
    expect(await rows()).toEqual([
      { minute, attempts: 5, latency: "[1,1,3,2,7,3]" },
      { minute: minute + 1, attempts: 2, latency: "[7,1,9,4]" },
    ]);
  });

  test("keep what another one that had its slot added meanwhile", async () => {
    const { add, rows, pool } = await open();
    await add(minute, [3, 1]);
    await pool.write("update stat set attempts = attempts + 1, latency = '[3,1,5,1]'");
    await add(minute, [3, 1]);
    await add(minute, [4, 1]);
    expect(await rows()).toEqual([{ minute, attempts: 4, latency: "[3,2,4,1,5,1]" }]);
  });

  test("of several are one when they are old", async () => {
    const { add, rows, pool, thin } = await open();
    await add(minute, [3, 1]);
    await add(minute + 60, [5, 1]);
    await pool.write("insert into stat select tenant_key, minute, 7, 0, 0, 0, attempts, '[3,1,4,2]' from stat");
    await thin();
    expect(await rows()).toEqual([
      { minute: 0, attempts: 2, latency: "[3,2,4,2]" },
      { minute: 60, attempts: 2, latency: "[3,1,4,2,5,1]" },
    ]);
  });

  test("begin anew with a row that is gone", async () => {
    const { add, rows, pool } = await open();
    await add(minute, [3, 1]);
    await pool.write("delete from stat");
    await add(minute, [4, 1]);
    expect(await rows()).toEqual([{ minute, attempts: 1, latency: "[4,1]" }]);
  });
});
