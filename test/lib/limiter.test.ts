import { describe, expect, test } from "bun:test";
import { createLimiter, createSemaphore } from "../../src/lib/limiter.ts";
import { createManualClock } from "../support/manual-clock.ts";

function limiterOf(options: { limit: number; windowMs: number; maxKeys?: number }) {
  const { clock, advance } = createManualClock();
  return { advance, limiter: createLimiter({ clock, maxKeys: 100, ...options }) };
}

describe("the limiter", () => {
  test("lets the limit pass, then says when there is room again", () => {
    const { limiter, advance } = limiterOf({ limit: 2, windowMs: 10_000 });
    expect(limiter.take("a")).toEqual({ ok: true });
    advance(4_000);
    expect(limiter.take("a")).toEqual({ ok: true });
    expect(limiter.take("a")).toEqual({ ok: false, retryAfterSeconds: 6 });
    advance(5_999);
    expect(limiter.take("a")).toEqual({ ok: false, retryAfterSeconds: 1 });
    advance(1);
    expect(limiter.take("a")).toEqual({ ok: true });
  });

  test("holds in every window, not only in those that begin at a round time", () => {
    const { limiter, advance } = limiterOf({ limit: 3, windowMs: 1_000 });
    const passed: number[] = [];
    for (let now = 0; now < 20_000; now += 100) {
      if (limiter.take("a").ok) passed.push(now);
      advance(100);
    }
    const most = Math.max(...passed.map((from) => passed.filter((at) => at >= from && at < from + 1_000).length));
    expect(most).toBe(3);
    expect(passed.length).toBe(60);
  });

  test("what is refused does not count", () => {
    const { limiter, advance } = limiterOf({ limit: 1, windowMs: 1_000 });
    limiter.take("a");
    advance(900);
    expect(limiter.take("a").ok).toBe(false);
    advance(100);
    expect(limiter.take("a").ok).toBe(true);
  });

  test("keys do not share", () => {
    const { limiter } = limiterOf({ limit: 1, windowMs: 1_000 });
    expect(limiter.take("a").ok).toBe(true);
    expect(limiter.take("b").ok).toBe(true);
    expect(limiter.take("a").ok).toBe(false);
  });

  test("a peek counts nothing", () => {
    const { limiter } = limiterOf({ limit: 1, windowMs: 1_000 });
    expect(limiter.peek("a").ok).toBe(true);
    expect(limiter.peek("a").ok).toBe(true);
    limiter.take("a");
    expect(limiter.peek("a")).toEqual({ ok: false, retryAfterSeconds: 1 });
  });

  test("what is given back can be taken again", () => {
    const { limiter } = limiterOf({ limit: 1, windowMs: 1_000 });
    limiter.take("a");
    limiter.giveBack("a");
    limiter.giveBack("a");
    expect(limiter.take("a").ok).toBe(true);
    expect(limiter.take("a").ok).toBe(false);
  });

  test("beyond maxKeys the key that was quiet for longest is forgotten", () => {
    const { limiter } = limiterOf({ limit: 2, windowMs: 1_000, maxKeys: 2 });
    for (const key of ["a", "b", "a", "c"]) limiter.take(key);
    expect(limiter.peek("a").ok).toBe(false);
    limiter.take("b");
    // Had `b` been remembered, it would be used up now.
    expect(limiter.peek("b").ok).toBe(true);
  });
});

describe("the semaphore", () => {
  test("runs so many at a time, the others in the order in which they came", async () => {
    const semaphore = createSemaphore(2);
    const started: number[] = [];
    const finish: (() => void)[] = [];
    const tasks = [0, 1, 2, 3].map((n) =>
      semaphore.run(() => {
        started.push(n);
        return new Promise<number>((resolve) => {
          finish[n] = () => resolve(n);
        });
      }),
    );
    expect(started).toEqual([0, 1]);
    expect(semaphore.waiting).toBe(2);
    finish[1]?.();
    expect(await tasks[1]).toBe(1);
    await Promise.resolve();
    expect(started).toEqual([0, 1, 2]);
    finish[0]?.();
    await tasks[0];
    finish[2]?.();
    await tasks[2];
    finish[3]?.();
    expect(await Promise.all(tasks)).toEqual([0, 1, 2, 3]);
    expect(semaphore.waiting).toBe(0);
  });

  test("a task that fails frees its slot", async () => {
    const semaphore = createSemaphore(1);
    await expect(semaphore.run(() => Promise.reject(new Error("failed")))).rejects.toThrow("failed");
    expect(await semaphore.run(() => Promise.resolve("next"))).toBe("next");
  });
});
