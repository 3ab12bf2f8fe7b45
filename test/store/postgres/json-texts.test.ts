import { describe, expect, test } from "bun:test";
import { jsonTextOf } from "../../../src/store/postgres/json-texts.ts";

const allCharacters = String.fromCodePoint(...Array.from({ length: 300 }, (_, i) => i));

describe("a text as it stands in JSON", () => {
  test.each([
    ["empty", ""],
    ["plain", "é 🚀 \u2028\ufeff"],
    ["quoted", `{"a":"b\\n"}`],
    ["of all characters that are escaped", allCharacters],
  ])("that is %s is the same text", (_, text) => {
    const json = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(
      jsonTextOf(new TextEncoder().encode(text)),
    );
    expect(JSON.parse(json)).toBe(text);
  });
});
