import { expect, test } from "bun:test";
import type { Limit, Limits } from "../../../src/store/limits.ts";
import { createLimits, pruneText } from "../../../src/store/postgres/limits.ts";
import { createFakeClock } from "../../support/fake-clock.ts";
import { describeWithPostgres, usePostgres } from "../../support/postgres.ts";

const limitOf = (given: Partial<Limit>): Limit => ({
  name: "of a test",
  most: 1,
  windowMs: 10_000,
  keys: 100,
  ...given,
});

describeWithPostgres("limits of several nodes", () => {
  const postgres = usePostgres();

  /** Nodes on one database, each with a clock of its own. */
  async function nodes(count: number) {
    const url = await postgres.migrated();
    const pool = postgres.pool(url);
    const opened = Array.from({ length: count }, () => {
      const clock = createFakeClock();
      return { clock, limits: createLimits({ pool: postgres.pool(url, { size: 4 }), clock }) };
    });
    return { pool, opened };
  }

  const take = (limits: Limits, limit: Limit, ...keys: string[]) => limits.take(keys.map((key) => ({ limit, key })));

  test("let exactly so many of a crowd pass, wherever it comes", async () => {
    const { opened } = await nodes(3);
    const limit = limitOf({ most: 10 });
    const turns = await Promise.all(
      Array.from({ length: 300 }, (_, n) => {
        const limits = opened[n % 3]?.limits ?? (null as never);
        return n % 2 === 0 ? take(limits, limit, "a", "b") : take(limits, limit, "b", "a");
      }),
    );
    expect(turns.filter(({ ok }) => ok)).toHaveLength(10);
  });

  test("take back on one what was counted on another", async () => {
    const { opened } = await nodes(2);
    const [one, other] = opened.map(({ limits }) => limits) as [Limits, Limits];
    const counts = [{ limit: limitOf({}), key: "a" }];
    expect((await one.take(counts)).ok).toBe(true);
    expect((await other.take(counts)).ok).toBe(false);
    expect((await other.peek(counts)).ok).toBe(false);
    await other.giveBack(counts);
    expect((await one.take(counts)).ok).toBe(true);
  });

  test("hold for no longer than their window, however far ahead the clock of another is", async () => {
    const { opened } = await nodes(2);
    const [ahead, here] = opened as [(typeof opened)[0], (typeof opened)[0]];
    ahead.clock.step(3_600_000);
    const limit = limitOf({ most: 2 });
    await take(ahead.limits, limit, "a");
    expect((await take(here.limits, limit, "a")).ok).toBe(true);
    expect(await take(here.limits, limit, "a")).toEqual({ ok: false, retryAfterSeconds: 10, by: limit });
    here.clock.advance(10_000);
    expect((await take(here.limits, limit, "a")).ok).toBe(true);
  });

  test("count by keys of any length and any characters", async () => {
    const { opened } = await nodes(1);
    const { limits } = opened[0] ?? (null as never);
    for (const key of ["x".repeat(100_000), "a\0b", "a\0c", '"{}\\', ""]) {
      expect((await take(limits, limitOf({}), key)).ok).toBe(true);
      expect((await take(limits, limitOf({}), key)).ok).toBe(false);
    }
  });

  test("forget those who were quiet for longest when strangers make up keys, also while they are refused", async () => {
    const { opened, pool } = await nodes(1);
    const { limits, clock } = opened[0] ?? (null as never);
    const limit = limitOf({ keys: 60, windowMs: 3_600_000 });
    const full = limitOf({ name: "full" });
    await take(limits, full, "all");
    const rows = async () => (await pool.read("select 1 from limit_window where name = 'of a test'")).length;
    for (let n = 0; n < 500; n += 1) {
      clock.advance(1);
      await limits.take([{ limit, key: `refused ${n}` }], [{ limit: full, key: "all" }]);
    }
    expect(await rows()).toBeLessThanOrEqual(2 * limit.keys + 200);
    for (let n = 0; n < 500; n += 1) {
      clock.advance(1);
      await take(limits, limit, `key ${n}`);
    }
    expect(await rows()).toBeLessThanOrEqual(2 * limit.keys + 200);
    for (let n = 440; n < 500; n += 1) expect((await limits.peek([{ limit, key: `key ${n}` }])).ok).toBe(false);
    expect((await limits.peek([{ limit, key: "key 0" }])).ok).toBe(true);
  });

  test("forget what counts no more", async () => {
    const { opened, pool } = await nodes(1);
    const { limits, clock } = opened[0] ?? (null as never);
    for (let n = 0; n < 50; n += 1) await take(limits, limitOf({}), `key ${n}`);
    clock.advance(10_000);
    for (let n = 0; n < 50; n += 1) await take(limits, limitOf({ most: 50 }), "another");
    expect(await pool.read("select 1 from limit_window")).toHaveLength(1);
  });

  test("look for what to forget in the index alone", async () => {
    const pool = postgres.pool(await postgres.migrated(), { size: 1 });
    await pool.write(
      `insert into limit_window select 'n' || i % 5, i::text, '{1}', i from generate_series(1, 50000) i`,
    );
    await pool.write("vacuum analyze limit_window");
    await pool.write("set plan_cache_mode = force_generic_plan");
    await pool.write(`prepare prune as ${pruneText}`);
    const plan = await pool.read<Record<string, string>>("explain execute prune('n1', 10, 40000, 200)");
    const text = plan.map((row) => row["QUERY PLAN"]).join("\n");
    expect(text).toContain("Index Scan using limit_window_by_end");
    expect(text).toContain("Index Only Scan using limit_window_by_end");
    expect(text).not.toContain("Seq Scan");
  });
});
