import { describe, expect, test } from "bun:test";
import { createPacedWorld } from "./paced-world.ts";

/** An account without a limit of its own; its webhooks are 300 to 399. */
async function limited(rateLimit: number, servers = 1) {
  const world = createPacedWorld({ servers });
  world.setTier(3, "enterprise");
  world.setLimits(300, { rateLimit });
  await world.dispatcher.start();
  // So long after a change, what is offered may be from before it.
  world.clock.advance(15_000);
  return world;
}

describe("the rate of a webhook", () => {
  test.each([
    [1, 1, 5],
    [3, 1, 15],
    [10, 1, 50],
    [50, 5, 253],
    [200, 20, 1010],
  ])("%d a second: %d at once, and %d in five seconds", async (rateLimit, atOnce, inFive) => {
    const world = await limited(rateLimit);
    world.offer(300, 5 * rateLimit + 100);
    await world.rest();
    expect(world.countOf(300)).toBe(atOnce);
    await world.pass(5_000);
    const begin = world.started[0]?.at ?? 0;
    expect(world.startedIn(300, begin, begin + 5_000)).toBe(inFive);
    const spans = world.started.map(({ at }) => world.startedIn(300, at, at + 1_000));
    expect(Math.max(...spans)).toBeLessThanOrEqual(rateLimit + (rateLimit < 10 ? 0 : atOnce));
  });

  test("is divided among the servers", async () => {
    const world = await limited(2, 4);
    world.offer(300, 50);
    await world.pass(10_000);
    expect(world.countOf(300)).toBe(6);
  });

  test("is no matter of its account, or of others: they wait for nothing", async () => {
    const world = await limited(1);
    world.offer(300, 5_000);
    world.offer(301, 200);
    world.offer(500, 50);
    await world.pass(100);
    expect([300, 301].map(world.countOf)).toEqual([1, 200]);
    expect(world.countOf(500)).toBe(50);
  });

  test("keeps what waits in the table, and reads no more of it than can go out", async () => {
    const world = await limited(10);
    world.offer(300, 100_000);
    await world.pass(500);
    expect(world.dispatcher.held).toBeLessThanOrEqual(1);
    expect(world.dispatcher.roomFor({ tenantKey: 3, webhookKey: 300 })).toBeLessThanOrEqual(1);
    const before = world.loads();
    await world.pass(1_000);
    expect(world.dispatcher.held).toBeLessThanOrEqual(1);
    expect(world.loads() - before).toBeLessThanOrEqual(11);
  });

  test("needs one timer, some twenty times a second", async () => {
    const world = await limited(100);
    world.offer(300, 2_000);
    world.hang();
    await world.rest();
    expect(world.clock.timers).toBe(1);
    expect(world.clock.nextTimerMs).toBeGreaterThanOrEqual(50);
  });

  test("is another one as soon as it is set, also none", async () => {
    const world = await limited(1);
    world.offer(300, 400);
    await world.pass(100);
    world.setLimits(300, { rateLimit: 100 });
    await world.pass(1_000);
    expect(world.countOf(300)).toBeGreaterThanOrEqual(90);
    world.setLimits(300, {});
    await world.pass(100);
    expect(world.countOf(300)).toBe(400);
    await world.dispatcher.whenIdle();
  });

  test("holds from the first delivery on, whoever it is that tells of it", async () => {
    const world = await limited(5);
    // As after a restart: nothing has been told but what a read of the table says.
    world.dispatcher.surrender();
    const waiting = world.accept(300, 100);
    await world.dispatcher.offer(waiting);
    await world.pass(1_000);
    expect(world.countOf(300)).toBeLessThanOrEqual(6);
    expect(world.countOf(300)).toBeGreaterThanOrEqual(5);
  });

  test("does not stand still when the wall clock is set back", async () => {
    const world = await limited(10);
    world.offer(300, 30);
    await world.pass(100);
    world.clock.step(-3_600_000);
    await world.pass(2_900);
    expect(world.countOf(300)).toBe(30);
    await world.dispatcher.whenIdle();
  });
});

describe("the most attempts at once to a webhook", () => {
  test.each([
    ["as many as it bears", 3, 1, 3],
    ["as many as any webhook gets, if it bears more", 50, 1, 16],
    ["its part from each server", 7, 3, 2],
    ["one at least", 2, 3, 1],
  ])("are %s", async (_, maxConcurrency, servers, most) => {
    const world = createPacedWorld({ servers });
    world.setTier(3, "enterprise");
    world.setLimits(300, { maxConcurrency });
    await world.dispatcher.start();
    world.offer(300, 40);
    world.offer(301, 40);
    await world.pass(10);
    expect([300, 301].map(world.countOf)).toEqual([40, 40]);
    expect([300, 301].map(world.mostAtOnce)).toEqual([most, 16]);
  });

  test("are fewer or more as soon as it is set", async () => {
    const world = createPacedWorld();
    world.setTier(3, "enterprise");
    world.setLimits(300, { maxConcurrency: 2 });
    await world.dispatcher.start();
    world.hang();
    world.offer(300, 40);
    await world.pass(5);
    expect(world.countOf(300)).toBe(2);
    world.setLimits(300, { maxConcurrency: 5 });
    await world.pass(5);
    expect(world.countOf(300)).toBe(5);
    world.setLimits(300, { maxConcurrency: 1 });
    world.setLimits(300, {});
    await world.pass(5);
    expect(world.countOf(300)).toBe(16);
  });
});
