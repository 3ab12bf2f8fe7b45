import { describe, expect, test } from "bun:test";
import { checkPassword } from "../../src/accounts/password.ts";
import { isGoodPassword, passwordRules } from "../../web/password/rules.ts";

/** What the server says of it. */
function isTaken(password: string): boolean {
  try {
    checkPassword(password);
    return true;
  } catch {
    return false;
  }
}

describe("the rules that are shown while a password is typed", () => {
  test.each([
    ["", false],
    ["Stamp#1", false],
    ["Stamp#12", true],
    ["stamp#12", false],
    ["STAMP#12", false],
    ["Stamp##x", false],
    ["Stamp-12", false],
    ["Élan 42 = ñ", true],
    ["ÉLAN 42 = Ñ", false],
    ["Aa1!😀😀😀", false],
    ["Aa1!😀😀😀😀", true],
    ["Stamp١٢٣#", false],
  ])("judge %p as the server does: %p", (password, isGood) => {
    expect(isGoodPassword(password)).toBe(isGood);
    expect(isTaken(password)).toBe(isGood);
  });

  test.each([..."@#$%^&+=!-_.,;:*?/\\|()[]{}<>~`'\" €"])("take %p as special as the server does", (character) => {
    const password = `Stamp1234${character}`;
    expect(isGoodPassword(password)).toBe(isTaken(password));
  });

  test("are each missed by some password", () => {
    const missing = ["Aa1!", "stamp#12", "STAMP#12", "Stamp##x", "Stamp-12"];
    const missed = missing.flatMap((password) => passwordRules.findIndex(({ holds }) => !holds(password)));
    expect(missed).toEqual([0, 1, 2, 3, 4]);
  });
});
