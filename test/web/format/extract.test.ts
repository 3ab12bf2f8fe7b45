import { expect, test } from "bun:test";
import { extractOf } from "../../../web/format/extract.ts";

test.each([
  ["", ""],
  ["busy", "busy"],
  ['{\n  "error": "down"\n}\n', '{ "error": "down" }'],
  ["\r\n  first \t line\r\nsecond", "first line second"],
  ["x".repeat(20), "x".repeat(20)],
  ["x".repeat(21), `${"x".repeat(20)}…`],
  [`${" ".repeat(50)}far in`, "far in"],
])("%j begins %j", (text, extract) => {
  expect(extractOf(text, 20)).toBe(extract);
});
