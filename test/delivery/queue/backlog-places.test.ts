import { expect, test } from "bun:test";
import { createOwnTimes } from "../../../src/delivery/own-times.ts";
import { createBacklogPlaces } from "../../../src/delivery/queue/backlog-places.ts";
import { dueDelivery } from "../../support/due-delivery.ts";
import { createFakeClock } from "../../support/fake-clock.ts";

const most = 480;

function setUp() {
  const clock = createFakeClock();
  const places = createBacklogPlaces(clock, most);
  const tell = createOwnTimes(clock, places.heed);
  return {
    places,
    /** Each millisecond an attempt is answered that took so long by us; and so often something fresh begins. */
    attempts(ownMs: number, forMs: number, { freshEveryMs = 10 }: { freshEveryMs?: number | null } = {}) {
      for (let ms = 0; ms < forMs; ms += 1) {
        clock.advance(1);
        if (freshEveryMs !== null && ms % freshEveryMs === 0) places.freshStarts();
        tell(dueDelivery(), ownMs);
      }
    },
  };
}

test("backlogs may have all places at first, and while attempts take no time of ours", () => {
  const { places, attempts } = setUp();
  expect(places.limit).toBe(most);
  attempts(10, 5_000);
  expect(places.limit).toBe(most);
});

test("backlogs get fewer places while attempts take long by us and something is new, and never less than 128", () => {
  const { places, attempts } = setUp();
  attempts(130, 140);
  expect(places.limit).toBeLessThan(most);
  expect(places.limit).toBeGreaterThanOrEqual(most / 2);
  attempts(130, 2_000);
  expect(places.limit).toBe(128);
});

test("one step follows another when attempts can tell of it", () => {
  const { places, attempts } = setUp();
  attempts(130, 20);
  const first = places.limit;
  attempts(130, 110);
  expect(places.limit).toBe(first);
  attempts(130, 30);
  expect(places.limit).toBeLessThan(first);
});

test("a step is as long as attempts are late", () => {
  const { places, attempts } = setUp();
  attempts(50, 20);
  expect(places.limit).toBeCloseTo(most * (40 / 50));
});

test("between prompt and late the number stays as it is", () => {
  const { places, attempts } = setUp();
  attempts(130, 2_000);
  attempts(30, 2_000);
  expect(places.limit).toBe(128);
});

test("backlogs get all places again when attempts are prompt", () => {
  const { places, attempts } = setUp();
  attempts(130, 2_000);
  attempts(10, 20);
  expect(places.limit).toBeWithin(129, 160);
  attempts(10, 300);
  expect(places.limit).toBe(most);
});

test("a second after the last fresh one, backlogs have nothing to give way to", () => {
  const { places, attempts } = setUp();
  attempts(130, 2_000);
  attempts(130, 900, { freshEveryMs: null });
  expect(places.limit).toBe(128);
  attempts(130, 1_000, { freshEveryMs: null });
  expect(places.limit).toBe(most);
});

test("one fresh delivery in half a second is enough", () => {
  const { places, attempts } = setUp();
  attempts(130, 3_000, { freshEveryMs: 500 });
  expect(places.limit).toBe(128);
});
