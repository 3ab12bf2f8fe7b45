import { expect, test } from "bun:test";
import { inAnyCase } from "../../src/store/any-case.ts";

test.each<[string, string[]]>([
  ["", []],
  ["Ab 1*", ["a", "b", " ", "1", "*"]],
  ["éÉ", ["éÉ", "Éé"]],
  ["ß", ["ß"]],
  ["ſ", ["ſ"]],
  ["ς", ["ς"]],
  ["𐐀", ["𐐀𐐨"]],
  ["店", ["店"]],
])("%j in any case is %j", (text, cases) => {
  expect(inAnyCase(text)).toEqual(cases);
});
