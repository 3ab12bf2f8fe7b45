import { expect, test } from "bun:test";
import { systemClock } from "../../../src/lib/clock.ts";
import { createSlowReads } from "../../../src/store/postgres/slow-reads.ts";
import { openPostgresStore } from "../../../src/store/postgres/store.ts";
import type { Store } from "../../../src/store/store.ts";
import { describeWithPostgres, usePostgres } from "../../support/postgres.ts";
import { newTenant, refusalOf } from "../../support/store-factory.ts";

const dayMs = 24 * 3_600_000;

describeWithPostgres("reads that take long", () => {
  const postgres = usePostgres();

  const preview = (store: Store, key: number) => store.previewReplay(key, { kind: "all" });
  const chart = (store: Store, key: number) => store.stats(key, { from: 0, to: 30 * dayMs, bucketMs: dayMs });
  const search = (store: Store, tenantKey: number) => store.page({ tenantKey, page: 0, size: 20, type: "none" });

  test.each([
    ["previews", "pending", preview],
    ["charts of a month", "stat", chart],
    ["filtered lists", "pending", search],
  ] as const)("leave connections to everybody else, however many %s an account asks for", async (_, table, read) => {
    const url = await postgres.migrated();
    const { store } = await openPostgresStore({ url, clock: systemClock, durability: "waived" });
    postgres.cleanUpFirst(() => store.close());
    const { id, key } = await store.createTenant(newTenant(), systemClock.now());
    let asked: Promise<string>[] = [];
    await postgres.pool(url).transact(async (tx) => {
      await tx.run(`lock table ${table} in access exclusive mode`);
      asked = Array.from({ length: 8 }, () => refusalOf(read(store, key)));
      expect(await store.findTenant(id)).toMatchObject({ key });
    });
    expect(new Set(await Promise.all(asked))).toEqual(new Set(["fulfilled"]));
  });

  test("of one account let another one's go first, and are refused beyond thirty", async () => {
    const slowReads = createSlowReads();
    const order: string[] = [];
    const read = (tenantKey: number) =>
      refusalOf(slowReads.run(tenantKey, async () => void order.push(`account ${tenantKey}`)));
    const asked = [...Array.from({ length: 40 }, () => read(1)), read(2)];
    const outcomes = await Promise.all(asked);
    expect(order.indexOf("account 2")).toBeLessThan(5);
    expect(outcomes.filter((outcome) => outcome === "unavailable storage_unavailable")).toHaveLength(9);
    expect(outcomes.at(-1)).toBe("fulfilled");
  });

  test("are not begun for a client that has gone", async () => {
    let isBegun = false;
    const read = async () => {
      isBegun = true;
    };
    expect(await refusalOf(createSlowReads().run(1, read, () => true))).toBe("invalid request_abandoned");
    expect(isBegun).toBe(false);
  });
});
