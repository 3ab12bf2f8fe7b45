import { describe, expect, test } from "bun:test";
import { createLoop } from "../../src/lib/loop.ts";
import { createFakeClock } from "../support/fake-clock.ts";

/** A loop whose steps take so long, each one told of as it begins; after three it rests. */
function createWorld(options: { stepMs: number; pausePerWork?: number; longestPauseMs?: number }) {
  const clock = createFakeClock();
  const { stepMs, ...rest } = options;
  let steps = 0;
  let begun = Promise.withResolvers<void>();
  const loop = createLoop({
    clock,
    mayStep: () => true,
    passOn() {},
    ...rest,
    async step() {
      steps += 1;
      clock.advance(stepMs);
      begun.resolve();
      begun = Promise.withResolvers();
      return steps < 3 ? "more" : "idle";
    },
    onFailure(error) {
      throw error;
    },
  });
  return { clock, loop, nextStep: () => begun.promise, steps: () => steps };
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

describe("a loop with more to do", () => {
  test("goes on after a turn of the event loop", async () => {
    const { clock, loop, steps } = createWorld({ stepMs: 5 });
    loop.start();
    await loop.whenIdle();
    expect({ steps: steps(), timers: clock.timers }).toEqual({ steps: 3, timers: 0 });
    await loop.stop();
  });

  test.each([
    { stepMs: 5, pausePerWork: 2, restMs: 10 },
    { stepMs: 7, pausePerWork: 1, restMs: 7 },
    { stepMs: 600, pausePerWork: 2, restMs: 50 },
    { stepMs: 600, pausePerWork: 2, longestPauseMs: 2_000, restMs: 1_200 },
  ])("lets $restMs ms pass after a step of $stepMs, with $pausePerWork for one", async ({ restMs, ...options }) => {
    const { clock, loop, nextStep, steps } = createWorld(options);
    loop.start();
    await turn();
    expect({ steps: steps(), nextTimerMs: clock.nextTimerMs }).toEqual({ steps: 1, nextTimerMs: restMs });
    const next = nextStep();
    clock.advance(restMs);
    await next;
    expect(steps()).toBe(2);
    await loop.stop();
    expect(clock.timers).toBe(0);
  });

  test("ends at once in the middle of a rest", async () => {
    const { clock, loop, steps } = createWorld({ stepMs: 5, pausePerWork: 2 });
    loop.start();
    await turn();
    await loop.stop();
    expect({ steps: steps(), timers: clock.timers }).toEqual({ steps: 1, timers: 0 });
  });
});

describe("a loop whose work may be somebody else's", () => {
  /** It always has more to do. */
  function createShared() {
    const clock = createFakeClock();
    const job = { isOurs: true };
    let passedOn = 0;
    let steps = 0;
    let underWay: PromiseWithResolvers<void> | null = null;
    const loop = createLoop({
      clock,
      mayStep: () => job.isOurs,
      passOn() {
        passedOn += 1;
      },
      async step() {
        steps += 1;
        await underWay?.promise;
        return "more";
      },
      onFailure(error) {
        throw error;
      },
    });
    const hold = () => {
      underWay = Promise.withResolvers();
      return underWay.resolve;
    };
    return { clock, loop, job, steps: () => steps, passedOn: () => passedOn, hold };
  }

  test("ends the step under way when it loses it, begins no other, and rests", async () => {
    const { clock, loop, job, steps, passedOn, hold } = createShared();
    const end = hold();
    loop.start();
    await turn();
    loop.wake();
    job.isOurs = false;
    end();
    await loop.whenIdle();
    expect(steps()).toBe(1);
    for (let second = 0; second < 10; second += 1) {
      clock.advance(1_000);
      await turn();
    }
    expect(passedOn()).toBe(0);
    loop.wake();
    await turn();
    expect({ steps: steps(), passedOn: passedOn(), timers: clock.timers }).toEqual({
      steps: 1,
      passedOn: 1,
      timers: 1,
    });
    await loop.stop();
    expect(clock.timers).toBe(0);
  });

  test("goes on within a second of getting it, and at once when it is woken", async () => {
    for (const notice of ["a second", "a wake"]) {
      const { clock, loop, job, steps } = createShared();
      job.isOurs = false;
      loop.start();
      await loop.whenIdle();
      job.isOurs = true;
      await turn();
      expect(steps()).toBe(0);
      if (notice === "a second") clock.advance(1_000);
      else loop.wake();
      await turn();
      await turn();
      expect(steps()).toBeGreaterThan(0);
      await loop.stop();
    }
  });
});
