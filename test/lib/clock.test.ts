import { expect, test } from "bun:test";
import { aheadOf } from "../../src/lib/clock.ts";

test.each([
  [100, 0],
  [150, 0],
  [200, 0],
  [99, -1],
  [201, 1],
])("a clock that says %i between 100 and 200 is ahead by %i at least", (otherMs, aheadMs) => {
  expect(aheadOf(otherMs, 100, 200)).toBe(aheadMs);
});
