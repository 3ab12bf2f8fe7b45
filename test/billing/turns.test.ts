import { describe, expect, test } from "bun:test";
import { createTurns } from "../../src/billing/turns.ts";
import { everyJob } from "../../src/store/jobs.ts";
import { storageDamaged } from "../../src/store/unless-damaged.ts";
import { until } from "../support/api-server.ts";
import { createManualClock } from "../support/manual-clock.ts";
import { startMonthEnd } from "../support/month-end.ts";

/** Turns of which the test says when they end. */
function startTurns(chargesPerSecond: number) {
  const { clock, advance } = createManualClock();
  const begun: number[] = [];
  const ends = new Map<number, () => void>();
  const turns = createTurns({
    clock,
    chargesPerSecond,
    onTurn(accountKey) {
      begun.push(accountKey);
      return new Promise((resolve) => ends.set(accountKey, resolve));
    },
    onEnded() {},
  });
  const end = async (accountKey: number) => {
    ends.get(accountKey)?.();
    await Bun.sleep(0);
  };
  return { turns, begun, advance, end };
}

describe("turns", () => {
  test("come at the rate that the processor takes, the longest waiting first", () => {
    const { turns, begun, advance } = startTurns(10);
    for (const key of [5, 3, 9, 1]) turns.wait(key, 1, "charge");
    expect(begun).toEqual([5]);
    advance(99);
    expect(begun).toEqual([5]);
    advance(1);
    expect(begun).toEqual([5, 3]);
    advance(100);
    advance(100);
    expect(begun).toEqual([5, 3, 9, 1]);
  });

  test("keep their place when something of the account has changed, which can be seen by its version", () => {
    const { turns, begun, advance } = startTurns(10);
    for (const key of [1, 2, 3]) turns.wait(key, 1, "charge");
    expect([turns.isWaiting(2, 1), turns.isWaiting(2, 2)]).toEqual([true, false]);
    turns.wait(2, 2, "charge");
    expect([turns.isWaiting(2, 1), turns.isWaiting(2, 2)]).toEqual([false, true]);
    advance(100);
    expect(begun).toEqual([1, 2]);
  });

  test("are four of a call at a time, and one of an account", async () => {
    const { turns, begun, advance, end } = startTurns(1000);
    for (const key of [1, 2, 3, 4, 5]) turns.wait(key, 1, "charge");
    for (let ms = 0; ms < 20; ms += 1) advance(1);
    expect(begun).toEqual([1, 2, 3, 4]);
    turns.wait(1, 2, "charge");
    await end(2);
    expect(begun).toEqual([1, 2, 3, 4, 5]);
    await end(3);
    expect(begun).toEqual([1, 2, 3, 4, 5]);
    await end(1);
    advance(1);
    expect(begun).toEqual([1, 2, 3, 4, 5, 1]);
  });

  test("wait for the end of a pause of their call, and not of another's", () => {
    const { turns, begun, advance } = startTurns(Number.POSITIVE_INFINITY);
    turns.pause("charge", 30_000);
    expect([turns.isOpen("charge"), turns.isOpen("look_up")]).toEqual([false, true]);
    turns.wait(1, 1, "charge");
    turns.wait(2, 1, "charge");
    advance(29_999);
    expect(begun).toEqual([]);
    advance(1);
    expect(begun).toEqual([1, 2]);
    expect(turns.isOpen("charge")).toBe(true);
  });

  test("end with the one under way", async () => {
    const { turns, begun, advance, end } = startTurns(10);
    for (const key of [1, 2]) turns.wait(key, 1, "charge");
    const stopped = turns.stop();
    advance(1_000);
    await end(1);
    await stopped;
    expect(begun).toEqual([1]);
  });
});

describe("a month's end of many accounts", () => {
  const charged = (world: Awaited<ReturnType<typeof startMonthEnd>>, n: number) =>
    until(
      () => world.charged.length,
      (length) => length >= n,
    );

  test("writes nothing for those that wait, delays no callback, and goes on where a restart has left it", async () => {
    const world = await startMonthEnd({ accounts: 40, chargesPerSecond: 20, chargeMs: 100 });
    const first = world.begin();
    first.biller.start();
    await charged(world, 5);
    // All are prepared, and wait for nothing but their turn.
    world.putOff.length = 0;
    const page = await world.payPage();
    await first.lookUpSoon(page.reference);
    await until(
      () => world.isVerified(page.key),
      (isVerified) => isVerified,
    );
    expect(world.charged.length).toBeLessThan(12);
    await charged(world, 20);
    await first.biller.stop();
    // One for each that came to rest after its charge, and the one of the callback.
    expect(world.putOff.length).toBeLessThanOrEqual(22);

    const { accounts } = await world.store.dueAccounts(Date.now(), 100);
    expect(accounts.length).toBeGreaterThanOrEqual(20);
    const second = world.begin();
    second.biller.start();
    await charged(world, 40);
    await second.biller.stop();
    const order = await world.order();
    expect([...order].sort((a, b) => a - b)).toEqual(world.keys);
    // Four are prepared at a time, so neighbours may change places, and nobody is left behind.
    for (const [place, key] of order.entries())
      expect(Math.abs(world.keys.indexOf(key) - place)).toBeLessThanOrEqual(4);
    await world.end();
  }, 120_000);

  test("ends where the job is lost, and goes on where it is: each account is charged once", async () => {
    const world = await startMonthEnd({ accounts: 30, chargesPerSecond: 30, chargeMs: 20 });
    let holder = "first";
    const begun: string[] = [];
    const begin = (name: string) =>
      world.begin({
        jobs: { ...everyJob, holds: () => holder === name },
        onCharge: () => void begun.push(`${name} while ${holder} has the job`),
      });
    const first = begin("first");
    const second = begin("second");
    first.biller.start();
    second.biller.start();
    await charged(world, 5);
    holder = "second";
    await charged(world, 30);
    await Promise.all([first.biller.stop(), second.biller.stop()]);

    expect([...(await world.order())].sort((a, b) => a - b)).toEqual(world.keys);
    // Four at a time may have been on their way to the processor.
    const late = begun.filter((charge) => charge === "first while second has the job").length;
    expect(late).toBeLessThanOrEqual(4);
    expect(begun.filter((charge) => charge === "second while first has the job")).toEqual([]);
    expect(begun.filter((charge) => charge === "second while second has the job").length).toBeGreaterThan(15);
    await world.end();
  }, 120_000);

  test("does not stop at accounts whose books cannot be read, however many they are and however long they are due", async () => {
    const world = await startMonthEnd({ accounts: 12, chargesPerSecond: Number.POSITIVE_INFINITY });
    const damaged = world.keys.slice(0, 8);
    const reads = new Map<number, number>();
    const over = {
      ...world.store,
      async books(key: number) {
        if (!damaged.includes(key)) return world.store.books(key);
        reads.set(key, (reads.get(key) ?? 0) + 1);
        throw storageDamaged();
      },
    };
    const { biller } = world.begin({ over });
    biller.start();
    await charged(world, 4);
    await biller.whenIdle();
    await biller.stop();
    expect([...(await world.order())].sort((a, b) => a - b)).toEqual(world.keys.slice(8));
    // Each is left out for a while.
    expect([...reads.values()]).toEqual(damaged.map(() => 1));
    await world.end();
  }, 120_000);

  test("charges each account once, also where two believe that the job is theirs", async () => {
    const world = await startMonthEnd({ accounts: 30, chargesPerSecond: Number.POSITIVE_INFINITY, chargeMs: 50 });
    const nodes = [world.begin(), world.begin()];
    for (const { biller } of nodes) biller.start();
    await charged(world, 30);
    await Promise.all(nodes.map(({ biller }) => biller.whenIdle()));
    await Promise.all(nodes.map(({ biller }) => biller.stop()));
    expect([...(await world.order())].sort((a, b) => a - b)).toEqual(world.keys);
    await world.end();
  }, 120_000);
});
