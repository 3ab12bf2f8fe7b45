import { expect, test } from "bun:test";
import { systemClock } from "../../../src/lib/clock.ts";
import { retire } from "../../../src/store/postgres/nodes.ts";
import { openPostgresStore } from "../../../src/store/postgres/store.ts";
import { createManualClock } from "../../support/manual-clock.ts";
import { describeWithPostgres, usePostgres } from "../../support/postgres.ts";
import { newTenant } from "../../support/store-factory.ts";
import { whenWaiting } from "./event-lane.ts";

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
