import { expect, test } from "bun:test";
import { createRecent } from "../../src/lib/recent.ts";

test("the latest are remembered, and beyond the limit the oldest is forgotten", () => {
  const recent = createRecent<number>(2);
  recent.add(1);
  recent.add(2);
  recent.add(1);
  recent.add(3);
  expect([1, 2, 3].map(recent.has)).toEqual([true, false, true]);
});
