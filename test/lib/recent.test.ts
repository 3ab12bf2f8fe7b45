import { expect, test } from "bun:test";
import { createRecent } from "../../src/lib/recent.ts";

test("what was set last is known by its latest value", () => {
  const recent = createRecent<string, number>(3);
  for (const [key, value] of [
    ["a", 1],
    ["b", 2],
    ["c", 3],
    ["a", 4],
    ["d", 5],
  ] as const)
    recent.set(key, value);
  expect(["a", "b", "c", "d", "e"].map(recent.get)).toEqual([4, 2, 3, 5, undefined]);
});

test.each([1, 2, 10])("with a limit of %i, so many are remembered at least and twice as many at most", (limit) => {
  const recent = createRecent<number, number>(limit);
  for (let last = 1; last <= 5 * limit; last += 1) {
    recent.set(last, last);
    const known = Array.from({ length: last }, (_, n) => recent.get(last - n));
    expect(known.slice(0, limit)).toEqual(Array.from({ length: Math.min(limit, last) }, (_, n) => last - n));
    expect(known.slice(2 * limit)).toEqual(known.slice(2 * limit).fill(undefined));
  }
});
