import { expect, test } from "bun:test";
import { watchLookUps } from "../../src/billing/look-up-watch.ts";
import type { PaymentProcessor, Unknown } from "../../src/billing/processor.ts";
import type { LogFields } from "../../src/lib/log.ts";
import { createManualClock } from "../support/manual-clock.ts";

/** A processor that answers as it is told, and what is said of it. */
function watched() {
  const { clock, advance } = createManualClock();
  const lines: (LogFields | undefined)[] = [];
  const world = { answer: null as Unknown | null, unknown: 0, lines, advance };
  const processor = {
    name: "paystack",
    lookUp: async () => world.answer ?? { kind: "not_found" },
  } as unknown as PaymentProcessor;
  const { lookUp } = watchLookUps(processor, {
    clock,
    log: { enabled: () => true, write: (_level, _event, fields) => void lines.push(fields) },
    onUnknown() {
      world.unknown += 1;
    },
  });
  const ask = async (reason: string, times: number) => {
    world.answer = { kind: "unknown", reason };
    for (let n = 0; n < times; n += 1) expect(await lookUp("sub-1")).toBe(world.answer);
  };
  return { ...world, ask, lookUp, count: () => world.unknown };
}

test("a look-up that cannot be read is told of once with its reason, and each is counted", async () => {
  const world = watched();
  await world.ask("Paystack answered with no status", 50);
  expect(world.lines).toEqual([{ processor: "paystack", reason: "Paystack answered with no status", lookUps: 1 }]);
  expect(world.count()).toBe(50);
});

test("it is told of again when the reason changes, and the same one after an hour, with how many there were", async () => {
  const world = watched();
  await world.ask("one", 10);
  await world.ask("another", 10);
  expect(world.lines.map((line) => [line?.reason, line?.lookUps])).toEqual([
    ["one", 1],
    ["another", 10],
  ]);
  // Two that take turns are no news.
  await world.ask("one", 1);
  await world.ask("another", 1);
  expect(world.lines).toHaveLength(2);
  world.advance(60 * 60_000);
  await world.ask("one", 1);
  expect(world.lines.at(-1)).toMatchObject({ reason: "one", lookUps: 12 });
});

test("what can be read is passed on, and not told of", async () => {
  const world = watched();
  expect(await world.lookUp("sub-1")).toEqual({ kind: "not_found" });
  expect([world.lines, world.count()]).toEqual([[], 0]);
});
