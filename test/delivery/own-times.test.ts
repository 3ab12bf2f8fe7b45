import { expect, test } from "bun:test";
import { createOwnTimes, type OwnTimes } from "../../src/delivery/own-times.ts";
import { nextEventSeq } from "../../src/lib/id.ts";
import { createFakeClock } from "../support/fake-clock.ts";

function setUp() {
  const clock = createFakeClock();
  const looks: OwnTimes[] = [];
  const tell = createOwnTimes(clock, (times) => looks.push(times));
  const event = { eventSeq: nextEventSeq(0, clock.now()), attempts: 0, replayKey: null };
  return { clock, looks, tell, event };
}

test("what attempts took is summed up for 20 ms, and then anew", () => {
  const { clock, looks, tell, event } = setUp();
  for (let ms = 1; ms <= 50; ms += 1) {
    clock.advance(1);
    tell(event, 2);
  }
  const times = { attempts: 20, ownMs: 40, newOwnMs: 40, elapsedMs: 20 };
  expect(looks).toEqual([times, times]);
});

test.each([
  ["a first attempt", {}, 0, 3],
  ["a retry", { attempts: 1 }, 0, 0],
  ["a replay", { replayKey: 7 }, 0, 0],
  ["a first attempt 10 s after the event was accepted", {}, 10_000, 0],
])("%s is of a new event, or not", (_, of, laterMs, newOwnMs) => {
  const { clock, looks, tell, event } = setUp();
  clock.advance(laterMs + 20);
  tell({ ...event, ...of }, 3);
  expect(looks).toMatchObject([{ attempts: 1, ownMs: 3, newOwnMs }]);
});
