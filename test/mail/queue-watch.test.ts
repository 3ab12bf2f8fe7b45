import { expect, test } from "bun:test";
import { isGrowing, isLong, queueWatch } from "../../src/domain/growing-queue.ts";
import { createQueueWatch } from "../../src/mail/queue-watch.ts";
import { createFakeClock } from "../support/fake-clock.ts";

test.each<[string, number[], boolean]>([
  ["one that grows", [1, 2, 3, 4, 5, 6, 1_000], true],
  ["one that is short", [1, 2, 3, 4, 5, 6, 999], false],
  ["one that shrank once", [1_000, 2_000, 3_000, 2_999, 4_000, 5_000, 6_000], false],
  ["one that stands still", [5_000, 5_000, 5_000, 5_000, 5_000, 5_000, 5_000], false],
  ["one that was not looked at for long", [1_000, 2_000], false],
])("a queue grows: %s", (_, depths, grows) => {
  expect(isGrowing(depths)).toBe(grows);
});

test.each([
  [999, false],
  [1_000, true],
])("a queue of %i is long: %p", (pending, is) => {
  expect(isLong(pending)).toBe(is);
});

test("the operator is told after half an hour, by the one server that looks", async () => {
  const clock = createFakeClock();
  const told: unknown[] = [];
  let pending = 0;
  let holds = true;
  const watch = createQueueWatch({
    clock,
    store: { queueDepth: async () => ({ pending, oldestDueAt: null }) },
    mayRun: () => holds,
    onGrowing: (found) => told.push(found),
  });
  watch.start();
  const look = async () => {
    pending += 500;
    clock.advance(queueWatch.everyMs);
    await Promise.resolve();
    await Promise.resolve();
  };
  for (let n = 0; n < queueWatch.looks; n++) await look();
  expect(told).toEqual([{ waiting: 3_500, minutes: 30 }]);
  holds = false;
  await look();
  holds = true;
  await look();
  expect(told).toHaveLength(1);
  watch.stop();
  await look();
  expect(told).toHaveLength(1);
});
