import { describe, expect, test } from "bun:test";
import { createAccountPace } from "../../../src/delivery/queue/account-pace.ts";
import { createFakeClock } from "../../support/fake-clock.ts";
import { createPacedWorld, rates } from "./paced-world.ts";

/** Ten seconds' worth are gone. */
async function spent(webhookKey = 100) {
  const world = createPacedWorld();
  await world.dispatcher.start();
  world.offer(webhookKey, 1_300);
  await world.pass(20);
  return world;
}

describe("the pace of an account", () => {
  test("is ten seconds' worth at once, and then the rate of its plan", async () => {
    const world = await spent();
    expect(world.countOf(100)).toBe(1_000);
    await world.pass(980);
    expect(world.countOf(100)).toBeLessThanOrEqual(1_100);
    expect(world.countOf(100)).toBeGreaterThanOrEqual(1_090);
    await world.pass(2_100);
    expect(world.countOf(100)).toBe(1_300);
    expect(new Set(world.started.map(({ deliveryKey }) => deliveryKey)).size).toBe(1_300);
    await world.dispatcher.whenIdle();
  });

  test("holds for all its webhooks together, which take turns", async () => {
    const world = await spent(100);
    world.offer(101, 300);
    const before = world.countOf(100);
    await world.pass(1_000);
    const [first, second] = [world.countOf(100) - before, world.countOf(101)];
    expect(first + second).toBeLessThanOrEqual(110);
    expect(Math.min(first, second)).toBeGreaterThan(30);
  });

  test("takes nothing of others: their deliveries go at once", async () => {
    const world = await spent();
    const at = world.clock.monotonicMs();
    world.offer(200, 50);
    await world.rest();
    expect(world.started.filter(({ webhookKey }) => webhookKey === 200).every((attempt) => attempt.at === at)).toBe(
      true,
    );
    expect(world.countOf(200)).toBe(50);
  });

  test("keeps what waits in the table, and reads no more of it than can go out", async () => {
    const world = await spent();
    world.offer(100, 5_000);
    expect(world.dispatcher.held).toBeLessThanOrEqual(10);
    const before = world.loads();
    await world.pass(1_000);
    expect(world.dispatcher.held).toBeLessThanOrEqual(10);
    expect(world.loads() - before).toBeLessThanOrEqual(30);
  });

  test("needs one timer, some ten times a second", async () => {
    const world = await spent();
    world.offer(100, 500);
    world.hang();
    expect(world.clock.timers).toBe(1);
    expect(world.clock.nextTimerMs).toBeGreaterThan(20);
  });

  test.each([
    ["none", "enterprise", 300],
    ["a higher one", "pro", 300],
  ] as const)("is that of another plan at once: %s", async (_, tier, left) => {
    const world = await spent();
    const before = world.countOf(100);
    world.setTier(1, tier);
    await world.pass(310);
    expect(world.countOf(100) - before).toBeGreaterThanOrEqual(Math.min(left, 298));
  });

  test("is lower at once after a step down", async () => {
    const world = createPacedWorld();
    world.setTier(1, "enterprise");
    await world.dispatcher.start();
    world.offer(100, 200);
    await world.rest();
    expect(world.countOf(100)).toBe(200);
    world.setTier(1, "business");
    world.offer(100, 200);
    await world.pass(3_000);
    expect(world.countOf(100)).toBeLessThanOrEqual(200 + 10 + 4);
  });

  test("does not stand still when the wall clock is set back", async () => {
    const world = await spent();
    world.offer(100, 100);
    const before = world.countOf(100);
    world.clock.step(-3_600_000);
    await world.pass(1_000);
    expect(world.countOf(100) - before).toBeGreaterThan(80);
  });

  test("fills up again while nothing is sent", async () => {
    const world = await spent();
    await world.pass(3_200);
    expect(world.countOf(100)).toBe(1_300);
    world.clock.advance(10_000);
    world.offer(100, 1_001);
    await world.rest();
    expect(world.countOf(100)).toBe(2_300);
  });

  test("counts what goes beside it, as a test does, which waits for nothing", async () => {
    const world = createPacedWorld();
    await world.dispatcher.start();
    for (let n = 0; n < 400; n++) world.pace.take(1, "free");
    world.offer(100, 1_000);
    await world.rest();
    expect(world.countOf(100)).toBe(600);
  });

  test("ends with the webhook: one that is removed while it waits is not served", async () => {
    const world = await spent();
    const before = world.countOf(100);
    world.dispatcher.removeWebhooks([100]);
    await world.pass(1_000);
    expect(world.countOf(100)).toBe(before);
    await world.dispatcher.whenIdle();
  });

  test("remembers only accounts that have lately sent", () => {
    const clock = createFakeClock();
    const pace = createAccountPace(clock, rates);
    const before = process.memoryUsage().heapUsed;
    for (let account = 0; account < 200_000; account++) {
      pace.take(account, "free");
      clock.advance(1);
    }
    Bun.gc(true);
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(4e6);
  });
});
