import { expect, test } from "bun:test";
import { sandboxName } from "../../src/accounts/names.ts";

test("a sandbox name is two words and two digits", () => {
  for (let i = 0; i < 200; i++) expect(sandboxName()).toMatch(/^Sandbox [A-Z][a-z]+ [A-Z][a-z]+ \d\d$/);
});

test("the first and the last of every list can be drawn", () => {
  expect(sandboxName(() => 0)).toBe("Sandbox Amber Acorn 00");
  expect(sandboxName((below) => below - 1)).toBe("Sandbox Witty Wren 99");
});
