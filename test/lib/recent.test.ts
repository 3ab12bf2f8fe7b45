import { expect, test } from "bun:test";
import { createRecent } from "../../src/lib/recent.ts";

test("the latest are remembered, and beyond the limit the oldest is forgotten", () => {
  const recent = createRecent<string, number>(2);
  recent.set("a", 1);
  recent.set("b", 2);
  recent.set("a", 3);
  recent.set("c", 4);
  expect(["a", "b", "c"].map(recent.get)).toEqual([3, undefined, 4]);
});
