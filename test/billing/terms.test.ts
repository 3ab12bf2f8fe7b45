import { expect, test } from "bun:test";
import { nextLookUpAt } from "../../src/billing/terms.ts";

const minute = 60_000;
const day = 24 * 60 * minute;

/** The ages, in minutes, at which a charge that nobody reports is looked up. */
function ages(): number[] {
  const seen: number[] = [];
  let at = nextLookUpAt(0, 0, 0);
  while (at !== null) {
    seen.push(at / minute);
    at = nextLookUpAt(0, seen.length, at);
  }
  return seen;
}

test("a charge is looked up after 1, 2, 5, 15 and 60 minutes, then each time half as long again", () => {
  expect(ages().slice(0, 8)).toEqual([1, 2, 5, 15, 60, 90, 135, 202.5]);
});

test("it is looked up at least once a day, until a page can surely not be paid any more", () => {
  const all = ages();
  const pauses = all.slice(1).map((age, i) => age - (all[i] ?? 0));
  expect(Math.max(...pauses)).toBe(day / minute);
  expect((all.at(-1) ?? 0) * minute).toBeGreaterThan(30 * day);
  expect(all.length).toBeLessThan(60);
});
