import { expect, test } from "bun:test";
import { createLeftOut } from "../../src/billing/left-out.ts";
import { unavailable } from "../../src/domain/errors.ts";
import { storageDamaged } from "../../src/store/unless-damaged.ts";
import { createFakeClock } from "../support/fake-clock.ts";

function setUp(errors: Record<number, Error>) {
  const clock = createFakeClock();
  const leftOut = createLeftOut(clock);
  const done: number[] = [];
  const each = (keys: Iterable<number>) =>
    leftOut.each(keys, async (key) => {
      const error = errors[key];
      if (error) throw error;
      done.push(key);
    });
  return { clock, leftOut, done, each };
}

test("what fails for an account stops nothing for the others, and the first error is thrown at the end", async () => {
  const { leftOut, done, each } = setUp({ 1: storageDamaged(), 3: new Error("x is undefined") });
  expect(await each([1, 2, 3, 4]).catch((error) => error)).toEqual(storageDamaged());
  expect(done).toEqual([2, 4]);
  expect([1, 2, 3, 4].map(leftOut.has)).toEqual([true, false, true, false]);
  expect(leftOut.size).toBe(2);
});

test("a store that is away ends it, and leaves no account out", async () => {
  const away = unavailable("The database does not answer.", "storage_unavailable");
  const { leftOut, done, each } = setUp({ 2: away });
  expect(await each([1, 2, 3]).catch((error) => error)).toBe(away);
  expect([done, leftOut.size, leftOut.nextMs]).toEqual([[1], 0, Number.POSITIVE_INFINITY]);
});

test("an account is left out for a minute after it failed last, or until it succeeds", async () => {
  const errors: Record<number, Error> = { 1: storageDamaged(), 2: storageDamaged() };
  const { clock, leftOut, done, each } = setUp(errors);
  await each([1, 2]).catch(() => {});
  clock.advance(20_000);
  await each([1]).catch(() => {});
  expect(leftOut.nextMs).toBe(40_000);
  clock.advance(40_000);
  expect([leftOut.has(1), leftOut.has(2), leftOut.nextMs]).toEqual([true, false, 20_000]);
  delete errors[1];
  await each([1]);
  expect([done, leftOut.has(1), leftOut.size]).toEqual([[1], false, 0]);
});
