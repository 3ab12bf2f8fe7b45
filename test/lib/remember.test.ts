import { expect, test } from "bun:test";
import { remember } from "../../src/lib/remember.ts";

function createCounted(most: number) {
  const asked: string[] = [];
  const lengthOf = remember((text) => {
    asked.push(text);
    return text === "" ? null : text.length;
  }, most);
  return { asked, lengthOf };
}

test("what was worked out once is known, also that there is nothing", () => {
  const { asked, lengthOf } = createCounted(10);
  expect(["ab", "", "ab", ""].map(lengthOf)).toEqual([2, null, 2, null]);
  expect(asked).toEqual(["ab", ""]);
});

test("no more texts are kept than was said, and none that is long", () => {
  const { asked, lengthOf } = createCounted(2);
  for (const text of ["a", "b", "c", "a"]) lengthOf(text);
  const long = "x".repeat(65);
  expect([lengthOf(long), lengthOf(long)]).toEqual([65, 65]);
  expect(asked).toEqual(["a", "b", "c", "a", long, long]);
});
