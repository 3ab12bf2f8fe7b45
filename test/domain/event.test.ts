import { expect, test } from "bun:test";
import { totalOf } from "../../src/domain/event.ts";

test.each([
  [0, 0, true],
  [10_000, 10_000, true],
  [10_001, 10_000, false],
])("of a filtered list %i records were counted: its total is %i, and exact: %p", (counted, total, totalIsExact) => {
  expect(totalOf(counted)).toEqual({ total, totalIsExact });
});
