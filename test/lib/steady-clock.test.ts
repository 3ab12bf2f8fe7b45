import { describe, expect, test } from "bun:test";
import { type ClockNews, createSteadyClock, disbeliefMs } from "../../src/lib/steady-clock.ts";
import { createFakeClock } from "../support/fake-clock.ts";

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const dayMs = 24 * hourMs;

function setUp() {
  const source = createFakeClock();
  const startMs = source.now();
  let sleptMs = 0;
  const news: ClockNews[] = [];
  const clock = createSteadyClock({
    source,
    uptimeMs: () => source.monotonicMs() + sleptMs + 5 * dayMs,
    tell: (one) => void news.push(one),
  });
  return {
    clock,
    news,
    step: source.step,
    advance: source.advance,
    /** The machine sleeps: the wall clock and its uptime go on, the monotonic clock does not. */
    sleep(ms: number) {
      sleptMs += ms;
      source.step(ms);
    },
    /** The wall clock, counted from the start. */
    sinceStart: () => clock.now() - startMs,
  };
}

describe("a clock that jumps 40 days ahead", () => {
  test("is not followed, and nothing has happened when it comes back", () => {
    const { step, advance, sinceStart, news } = setUp();
    step(40 * dayMs);
    expect(sinceStart()).toBe(0);
    advance(disbeliefMs - 1);
    expect(sinceStart()).toBe(disbeliefMs - 1);
    step(-40 * dayMs);
    advance(1000);
    expect(sinceStart()).toBe(disbeliefMs + 999);
    expect(news).toEqual([{ kind: "ahead", byMs: 40 * dayMs }, { kind: "ahead_over" }]);
  });

  test("is held back in whole milliseconds", () => {
    const { step, advance, sinceStart } = setUp();
    advance(0.4);
    step(40 * dayMs);
    advance(0.3);
    expect(sinceStart()).toBe(0);
  });

  test("is followed when it stays so for ten minutes, and told of once", () => {
    const { step, advance, sinceStart, news } = setUp();
    step(40 * dayMs);
    for (let i = 0; i < 20; i++) {
      sinceStart();
      advance(minuteMs);
    }
    expect(sinceStart()).toBe(40 * dayMs + 20 * minuteMs);
    expect(news).toEqual([
      { kind: "ahead", byMs: 40 * dayMs },
      { kind: "ahead_believed", byMs: 40 * dayMs },
    ]);
  });

  test("has to stay where it is: another jump begins the ten minutes anew", () => {
    const { step, advance, sinceStart, news } = setUp();
    step(2 * hourMs);
    sinceStart();
    advance(disbeliefMs / 2);
    step(10 * hourMs);
    sinceStart();
    advance(disbeliefMs / 2);
    expect(sinceStart()).toBe(disbeliefMs);
    expect(news.map(({ kind }) => kind)).toEqual(["ahead", "ahead"]);
  });
});

describe("what is followed at once", () => {
  test.each([
    ["a correction of less than an hour", hourMs - 1],
    ["a correction back of less than an hour", -(hourMs - 1)],
  ])("%s, without a word", (_, ms) => {
    const { step, sinceStart, news } = setUp();
    step(ms);
    expect([sinceStart(), news]).toEqual([ms, []]);
  });

  test("a clock that drifts by hours in the course of weeks", () => {
    const { step, advance, sinceStart, news } = setUp();
    for (let day = 0; day < 100; day++) {
      advance(dayMs);
      step(5 * minuteMs);
      sinceStart();
    }
    expect([sinceStart(), news]).toEqual([100 * (dayMs + 5 * minuteMs), []]);
  });

  test("a night in which the machine slept, and another one", () => {
    const { sleep, advance, sinceStart, news } = setUp();
    sleep(8 * hourMs);
    expect(sinceStart()).toBe(8 * hourMs);
    advance(16 * hourMs);
    sleep(9 * hourMs);
    expect([sinceStart(), news]).toEqual([33 * hourMs, []]);
  });

  test("a clock that is set back, with a word", () => {
    const { step, sinceStart, news } = setUp();
    step(-2 * dayMs);
    expect([sinceStart(), sinceStart()]).toEqual([-2 * dayMs, -2 * dayMs]);
    expect(news).toEqual([{ kind: "back", byMs: 2 * dayMs }]);
  });
});

test("durations and timers are those of the clock below", () => {
  const { clock, advance, step } = setUp();
  let rang = 0;
  clock.after(1000, () => {
    rang += 1;
  });
  step(40 * dayMs);
  advance(1000);
  expect([clock.monotonicMs(), rang]).toEqual([1000, 1]);
});
