import { describe, expect, test } from "bun:test";
import { createDatabaseClock } from "../../src/lib/database-clock.ts";
import { createFakeClock } from "../support/fake-clock.ts";

const epoch = Date.UTC(2026, 2, 1, 12);

describe("a clock that follows the database's", () => {
  /** A database whose clock is `ahead` ms ahead of this machine's, and goes `rate` times as fast. */
  function createWorld({ ahead = 0, rate = 1 } = {}) {
    const machine = createFakeClock(epoch);
    const clock = createDatabaseClock(machine);
    const database = { stepped: 0, now: () => epoch + ahead + database.stepped + machine.monotonicMs() * rate };
    const error = () => clock.now() - database.now();
    /** A question that takes so long to get there, and so long to be answered. */
    function ask(there: number, back: number) {
      const sentAt = machine.monotonicMs();
      machine.advance(there);
      const now = database.now();
      machine.advance(back);
      clock.heard({ now, sentAt, heardAt: machine.monotonicMs() });
    }
    return { machine, clock, database, error, ask };
  }

  test("is the machine's until it has heard anything", () => {
    const { clock, machine } = createWorld({ ahead: 5_000 });
    expect(clock.now()).toBe(epoch);
    machine.advance(1_234);
    expect(clock.now()).toBe(epoch + 1_234);
  });

  test.each([-3_600_000, -20, 0, 5_000, 3_600_000])(
    "is right at its first answer when the database is %d ms ahead",
    (ahead) => {
      const { error, ask, machine } = createWorld({ ahead });
      ask(4, 4);
      expect(error()).toBe(0);
      machine.advance(60_000);
      expect(error()).toBe(0);
    },
  );

  test("does not heed the machine's wall clock from then on", () => {
    const { error, ask, machine } = createWorld({ ahead: 300 });
    ask(1, 1);
    machine.step(86_400_000);
    expect(error()).toBe(0);
  });

  test("is wrong by no more than the quickest question took, however slow and lopsided others are", () => {
    const { error, ask, machine } = createWorld({ ahead: 700 });
    ask(0, 2_000);
    expect(error()).toBe(-1_000);
    ask(1, 3);
    expect(Math.abs(error())).toBeLessThanOrEqual(4);
    let before = Math.abs(error());
    for (const [there, back] of [
      [5_000, 0],
      [0, 5_000],
      [30, 900],
      [900, 30],
    ] as const) {
      machine.advance(3_000);
      ask(there, back);
      expect(Math.abs(error())).toBeLessThanOrEqual(before);
      before = Math.abs(error());
    }
  });

  test("stays where it is as long as the answers allow it", () => {
    const { clock, ask, machine } = createWorld();
    ask(2, 2);
    const offsets = new Set<number>();
    for (let n = 0; n < 100; n += 1) {
      machine.advance(3_000);
      ask(n % 7, (n * 3) % 7);
      offsets.add(clock.now() - machine.monotonicMs());
    }
    expect(offsets.size).toBe(1);
  });

  test.each([1.0004, 0.9996])("follows a database that goes %d times as fast, in small steps", (rate) => {
    const { clock, error, ask, machine } = createWorld({ rate });
    ask(1, 1);
    for (let n = 0; n < 1_000; n += 1) {
      machine.advance(3_000);
      const before = clock.now();
      ask(1, 1);
      expect(Math.abs(clock.now() - before - 2)).toBeLessThan(5);
      expect(Math.abs(error())).toBeLessThan(8);
    }
  });

  test.each([-7_200_000, -500, 500, 7_200_000])("follows at once when the database's clock is set by %d ms", (byMs) => {
    const { database, error, ask, machine } = createWorld({ ahead: 100 });
    for (let n = 0; n < 10; n += 1) {
      machine.advance(3_000);
      ask(1, 1);
    }
    database.stepped += byMs;
    machine.advance(3_000);
    ask(1, 1);
    expect(error()).toBe(0);
  });

  test("leaves durations and timers to the machine", () => {
    const { clock, ask, machine } = createWorld({ ahead: 3_600_000 });
    let ran = 0;
    clock.after(1_000, () => {
      ran += 1;
    });
    ask(1, 1);
    expect([clock.monotonicMs(), ran]).toEqual([2, 0]);
    machine.advance(998);
    expect(ran).toBe(1);
  });
});
