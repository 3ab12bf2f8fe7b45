import { expect, test } from "bun:test";
import { systemClock } from "../../../src/lib/clock.ts";
import { createMembership } from "../../../src/store/postgres/membership.ts";
import { retire } from "../../../src/store/postgres/nodes.ts";
import { openPostgresStore } from "../../../src/store/postgres/store.ts";
import { createManualClock } from "../../support/manual-clock.ts";
import { describeWithPostgres, usePostgres } from "../../support/postgres.ts";
import { newTenant } from "../../support/store-factory.ts";
import { description, whenWaiting } from "./event-lane.ts";

describeWithPostgres("a heartbeat", () => {
  const postgres = usePostgres();

  test("does not wait for reads, however slow and many they are", async () => {
    const url = await postgres.migrated();
    const time = createManualClock();
    let onBeat = () => {};
    const { store } = await openPostgresStore({
      url,
      clock: systemClock,
      machineClock: time.clock,
      durability: "waived",
      onBeat: () => onBeat(),
    });
    postgres.cleanUpFirst(() => store.close());
    const { key } = await store.createTenant(newTenant(), systemClock.now());
    const observer = postgres.pool(url);
    const isSlow = Promise.withResolvers<void>();
    const mayEnd = Promise.withResolvers<void>();
    const slow = observer.transact(async (tx) => {
      await tx.run("lock table webhook in access exclusive mode");
      isSlow.resolve();
      await mayEnd.promise;
    });
    await isSlow.promise;
    const reads = Array.from({ length: 12 }, () => store.webhooks(key));
    await whenWaiting(observer, 4);
    const beaten = new Promise<void>((resolve) => {
      onBeat = resolve;
    });
    time.advance(3_000);
    await beaten;
    mayEnd.resolve();
    await slow;
    expect(await Promise.all(reads)).toHaveLength(12);
  });

  test("comes before anybody is declared dead because the database's clock was set forward", async () => {
    const url = await postgres.migrated();
    const server = postgres.pool(url, { size: 1 });
    await server.write("create table leap as select interval '0' as ahead");
    await server.write(`create function clock_timestamp() returns timestamptz language sql volatile as
      $$ select pg_catalog.clock_timestamp() + ahead from leap $$`);
    await server.write(`alter database ${new URL(url).pathname.slice(1)} set search_path = public, pg_catalog`);
    const pool = postgres.pool(url, { size: 2 });
    const told: string[] = [];
    const member = async () => {
      const time = createManualClock();
      const membership = createMembership({
        pool,
        openPool: () => ({ ...pool, close: async () => {} }),
        clock: time.clock,
        patience: { url, clock: time.clock, onFailure() {} },
        description,
        onLost: () => told.push("lost"),
        onJoined() {},
        heed: async () => {},
        onBeat() {},
        onRescued: (nodes) => told.push(`${nodes.length} rescued`),
        onFailure: (error) => told.push(String(error)),
      });
      postgres.cleanUpFirst(() => membership.stop());
      await membership.start();
      /** Lets time pass, and waits for the heartbeat or the look that follows. */
      const pass = async (ms: 1_000 | 3_000) => {
        const done = time.whenSet(ms);
        time.advance(ms);
        await done;
      };
      return { pass };
    };
    const [one, other] = [await member(), await member()];
    for (let i = 0; i < 7; i++) await Promise.all([one.pass(3_000), other.pass(3_000)]);
    await server.write("update leap set ahead = '1 minute'");
    await one.pass(1_000);
    await one.pass(1_000);
    await Promise.all([one.pass(3_000), other.pass(3_000)]);
    expect(told).toEqual([]);
    expect(await pool.read("select 1 from node where lease_until > clock_timestamp()")).toHaveLength(2);
  });

  test("that finds its node declared dead has it join again, and tells for how long it was away", async () => {
    const url = await postgres.migrated();
    const time = createManualClock();
    const { store, lease } = await openPostgresStore({
      url,
      clock: systemClock,
      machineClock: time.clock,
      durability: "waived",
    });
    postgres.cleanUpFirst(() => store.close());
    const told: unknown[] = [];
    const back = new Promise<void>((resolve) => {
      const rejoined = (awayMs: number) => {
        told.push(awayMs);
        resolve();
      };
      lease.onChange({ lost: () => void told.push("lost"), rejoined, confirmed() {}, rescued() {}, unowned() {} });
    });
    const observer = postgres.pool(url);
    for (const { incarnation } of await lease.nodes()) await retire(observer, incarnation);
    time.advance(22_000);
    await back;
    expect(told).toEqual(["lost", 22_000]);
  });
});
