import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { Count, Limit } from "../../../src/store/limits.ts";
import type { StoreBackend } from "../../support/store-backend.ts";
import { createWorld, type World } from "../../support/store-factory.ts";

const limitOf = (given: Partial<Limit>): Limit => ({
  name: "of a test",
  most: 1,
  windowMs: 1_000,
  keys: 100,
  ...given,
});

/** What `src/store/limits.ts` says, for any backend. */
export function limitsContract(backend: StoreBackend): void {
  describe(`${backend.name} holds limits:`, () => {
    let world: World;
    beforeEach(async () => {
      world = await createWorld(backend);
    });
    afterEach(() => world.end());

    const counts = (limit: Limit, ...keys: string[]): Count[] => keys.map((key) => ({ limit, key }));
    const take = (limit: Limit, ...keys: string[]) => world.limits.take(counts(limit, ...keys));
    const peek = (limit: Limit, ...keys: string[]) => world.limits.peek(counts(limit, ...keys));
    /** How many of so many takes at once pass. */
    async function passedOf(takes: readonly (() => ReturnType<typeof take>)[]) {
      return (await Promise.all(takes.map((begin) => begin()))).filter(({ ok }) => ok).length;
    }

    describe("one limit", () => {
      test("lets so many pass, then says in how many seconds there is room again", async () => {
        const limit = limitOf({ most: 2, windowMs: 10_000 });
        expect(await take(limit, "a")).toEqual({ ok: true });
        world.clock.advance(4_000);
        expect(await take(limit, "a")).toEqual({ ok: true });
        expect(await take(limit, "a")).toEqual({ ok: false, retryAfterSeconds: 6, by: limit });
        world.clock.advance(5_999);
        expect(await take(limit, "a")).toEqual({ ok: false, retryAfterSeconds: 1, by: limit });
        world.clock.advance(1);
        expect(await take(limit, "a")).toEqual({ ok: true });
      });

      test("holds in every window, not only in those that begin at a round time", async () => {
        const limit = limitOf({ most: 3 });
        const passed: number[] = [];
        for (let now = 0; now < 20_000; now += 100) {
          if ((await take(limit, "a")).ok) passed.push(now);
          world.clock.advance(100);
        }
        const most = Math.max(...passed.map((from) => passed.filter((at) => at >= from && at < from + 1_000).length));
        expect([most, passed.length]).toEqual([3, 60]);
      });

      test("does not count what it refuses", async () => {
        await take(limitOf({}), "a");
        world.clock.advance(900);
        expect((await take(limitOf({}), "a")).ok).toBe(false);
        world.clock.advance(100);
        expect((await take(limitOf({}), "a")).ok).toBe(true);
      });

      test("shares nothing between keys, and nothing with another limit", async () => {
        const other = limitOf({ name: "of another test" });
        expect((await take(limitOf({}), "a")).ok).toBe(true);
        expect((await take(limitOf({}), "b")).ok).toBe(true);
        expect((await take(other, "a")).ok).toBe(true);
        expect((await take(limitOf({}), "a")).ok).toBe(false);
      });

      test("counts nothing for a look", async () => {
        expect(await peek(limitOf({}), "a")).toEqual({ ok: true });
        expect(await peek(limitOf({}), "a")).toEqual({ ok: true });
        await take(limitOf({}), "a");
        expect(await peek(limitOf({}), "a")).toEqual({ ok: false, retryAfterSeconds: 1, by: limitOf({}) });
      });

      test("takes back the latest, and nothing where nothing was counted", async () => {
        const limit = limitOf({ most: 2 });
        await take(limit, "a");
        world.clock.advance(600);
        await take(limit, "a");
        await world.limits.giveBack(counts(limit, "a", "b"));
        expect((await take(limit, "a")).ok).toBe(true);
        expect(await take(limit, "a")).toEqual({ ok: false, retryAfterSeconds: 1, by: limit });
        world.clock.advance(400);
        // The first has left the window; had it been given back in place of the second, nothing would have left yet.
        expect((await take(limit, "a")).ok).toBe(true);
        expect((await take(limit, "a")).ok).toBe(false);
        await take(limit, "b");
        await take(limit, "b");
        expect((await take(limit, "b")).ok).toBe(false);
      });

      test("lets exactly so many of a crowd pass that comes at once", async () => {
        const limit = limitOf({ most: 10 });
        expect(await passedOf(Array.from({ length: 100 }, () => () => take(limit, "a")))).toBe(10);
      });

      test("remembers as many keys as it says", async () => {
        const keys = Array.from({ length: 100 }, (_, n) => `key ${n}`);
        for (const key of keys) await take(limitOf({}), key);
        for (const key of keys) expect((await peek(limitOf({}), key)).ok).toBe(false);
      });
    });

    describe("several at once", () => {
      const narrow = limitOf({ name: "narrow" });
      const wide = limitOf({ name: "wide", most: 3, windowMs: 60_000 });
      const both: Count[] = [...counts(narrow, "a"), ...counts(wide, "a")];

      test("count in all or in none", async () => {
        expect((await world.limits.take(both)).ok).toBe(true);
        for (let n = 0; n < 5; n += 1) expect((await world.limits.take(both)).ok).toBe(false);
        world.clock.advance(1_000);
        expect((await world.limits.take(both)).ok).toBe(true);
        world.clock.advance(1_000);
        expect((await world.limits.take(both)).ok).toBe(true);
        expect((await take(wide, "a")).ok).toBe(false);
      });

      test("name the first that has no room", async () => {
        await world.limits.take(both);
        expect(await world.limits.take(both)).toEqual({ ok: false, retryAfterSeconds: 1, by: narrow });
        await take(wide, "a");
        await take(wide, "a");
        expect(await world.limits.peek(both)).toEqual({ ok: false, retryAfterSeconds: 1, by: narrow });
        expect(await world.limits.peek([...both].reverse())).toEqual({ ok: false, retryAfterSeconds: 60, by: wide });
        world.clock.advance(1_000);
        expect(await world.limits.take(both)).toEqual({ ok: false, retryAfterSeconds: 59, by: wide });
      });

      test("look at others, which are told last and count nothing", async () => {
        const others = counts(wide, "a");
        for (let n = 0; n < 5; n += 1) {
          expect((await world.limits.take(counts(narrow, "a"), others)).ok).toBe(true);
          world.clock.advance(1_000);
        }
        for (let n = 0; n < 3; n += 1) await take(wide, "a");
        const refused = { ok: false, retryAfterSeconds: 60, by: wide } as const;
        expect(await world.limits.take(counts(narrow, "a"), others)).toEqual(refused);
        expect((await take(narrow, "a")).ok).toBe(true);
        expect(await world.limits.take(counts(narrow, "a"), others)).toMatchObject({ by: narrow });
      });

      test("do not wait for each other in a circle", async () => {
        const limit = limitOf({ most: 10 });
        const takes = Array.from(
          { length: 100 },
          (_, n) => () => (n % 2 === 0 ? take(limit, "a", "b") : take(limit, "b", "a")),
        );
        expect(await passedOf(takes)).toBe(10);
      });
    });
  });
}
