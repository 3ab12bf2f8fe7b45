import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { formatJson, type Token, textOf, tokenizeJson } from "../../../web/payload/json-tokens.ts";

const kinds = (text: string) => tokenizeJson(text).map(({ kind, text }) => [kind, text]);
const formatted = (text: string) => textOf(formatJson(tokenizeJson(text)));
const withoutSpace = (tokens: readonly Token[]) => tokens.filter(({ kind }) => kind !== "space");

/** A JSON text as some program might write it: with white space of any kind between the tokens. */
const jsonTexts = fc
  .tuple(fc.json(), fc.array(fc.constantFrom("", " ", "\n", "\t\r\n", "  "), { minLength: 1 }))
  .map(([json, spaces]) =>
    tokenizeJson(json).reduce((text, token, i) => text + spaces[i % spaces.length] + token.text, ""),
  );

describe("tokenizeJson", () => {
  test("tells keys from strings, and names the rest", () => {
    expect(kinds('{"a" : ["b",-1.50e+3,true , null]}')).toEqual([
      ["punctuation", "{"],
      ["key", '"a"'],
      ["space", " "],
      ["punctuation", ":"],
      ["space", " "],
      ["punctuation", "["],
      ["string", '"b"'],
      ["punctuation", ","],
      ["number", "-1.50e+3"],
      ["punctuation", ","],
      ["literal", "true"],
      ["space", " "],
      ["punctuation", ","],
      ["space", " "],
      ["literal", "null"],
      ["punctuation", "]"],
      ["punctuation", "}"],
    ]);
  });

  test.each([
    ['"a \\" b"', "an escaped quote"],
    ['"a \\\\"', "an escaped backslash at the end"],
    ['"\\u00e9\\/\\ud83d"', "escapes, half a pair among them"],
    ['"{[:,]} // 1 true"', "what would be tokens outside"],
    ['"é 🚀 \u2028 \u0000"', "any other character"],
    ["12345678901234567890123", "more digits than a number of JavaScript has"],
    ["1.0", "a fraction that says nothing"],
    ["-0", "minus zero"],
    ["1E+2", "a capital exponent"],
  ])("%p is one token: %s", (text) => {
    expect(tokenizeJson(text)).toHaveLength(1);
  });

  test("the texts of the tokens are the text", () => {
    fc.assert(fc.property(jsonTexts, (text) => expect(textOf(tokenizeJson(text))).toBe(text)));
    fc.assert(fc.property(fc.string(), (text) => expect(textOf(tokenizeJson(text))).toBe(text)));
  });

  test("each value and key of a JSON text is the token that it is", () => {
    fc.assert(
      fc.property(jsonTexts, (text) => {
        for (const { kind, text: token } of tokenizeJson(text)) {
          const value: unknown = /key|string|number|literal/.test(kind) ? JSON.parse(token) : undefined;
          if (kind === "key" || kind === "string") expect(typeof value).toBe("string");
          if (kind === "number") expect(typeof value).toBe("number");
          if (kind === "literal") expect([true, false, null]).toContain(value as boolean | null);
        }
      }),
    );
  });

  test.each([
    ['{"a": "never ends', "an open string"],
    ['{"a": "\\', "a string that ends in its escape"],
    ["{'a': 1}", "other quotes"],
    ["[01]", "a leading zero"],
    ["[1, undefined]", "a word that is none"],
    ["\u00a0{}", "a space that JSON does not know"],
    ["\ufeff{}", "a byte order mark"],
  ])("%p does not throw: %s", (text) => {
    expect(textOf(tokenizeJson(text))).toBe(text);
  });

  test("what is no token begins a literal that reaches to the end", () => {
    expect(kinds('{"a": nope, "b": 1}').slice(4)).toEqual([["literal", 'nope, "b": 1}']]);
    expect(kinds('["open, 1]')).toEqual([
      ["punctuation", "["],
      ["literal", '"open, 1]'],
    ]);
  });
});

describe("formatJson", () => {
  test("lays out by two spaces a level, and leaves what is empty together", () => {
    expect(formatted('{"a":[1,{"b":null}],"c":{},"d":[ ],"e":"x"}')).toBe(
      [
        "{",
        '  "a": [',
        "    1,",
        "    {",
        '      "b": null',
        "    }",
        "  ],",
        '  "c": {},',
        '  "d": [],',
        '  "e": "x"',
        "}",
      ].join("\n"),
    );
  });

  test("is what JSON.stringify makes of values that it can hold", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const text = JSON.stringify(value);
        expect(formatted(text)).toBe(JSON.stringify(JSON.parse(text), null, 2));
      }),
    );
  });

  test("changes no token but space, whatever stood between them, and formats itself to itself", () => {
    fc.assert(
      fc.property(jsonTexts, (text) => {
        const tokens = tokenizeJson(text);
        expect(withoutSpace(formatJson(tokens))).toEqual(withoutSpace(tokens));
        expect(formatted(formatted(text))).toBe(formatted(text));
      }),
    );
  });

  test("keeps what parsing would lose", () => {
    const text = '{"n":12345678901234567890123,"one":1.0,"n":1E+2,"e":"\\u00e9\\/","__proto__":-0}';
    expect(formatted(text).replace(/\n *|(?<=:) /g, "")).toBe(text);
  });

  test("makes no new value out of two that stand side by side", () => {
    expect(formatted("1 2")).toBe("1 2");
    expect(formatted("[1 2]")).toBe("[\n  1 2\n]");
    expect(formatted("}} ]")).not.toContain("undefined");
  });
});

describe("256 KiB of anything take a moment", () => {
  const size = 256 * 1024;
  test.each([
    ["brackets", "[".repeat(size)],
    ["open strings", '"'.repeat(size - 1)],
    ["backslashes", `"${"\\".repeat(size)}`],
    ["space", `"a"${" ".repeat(size)}`],
    ["strings with space behind them", `"a"${" ".repeat(60)}`.repeat(size / 64)],
    ["numbers", "1,".repeat(size / 2)],
    ["one number", "1".repeat(size)],
    ["one string", `"${"x".repeat(size)}"`],
    ["letters", "x".repeat(size)],
  ])("%s", (_, text) => {
    const start = performance.now();
    const tokens = tokenizeJson(text);
    const laidOut = textOf(formatJson(tokens));
    // The square of the length would be minutes.
    expect(performance.now() - start).toBeLessThan(2_000);
    expect(textOf(tokens)).toBe(text);
    expect(laidOut.length).toBeLessThan(size * 140);
  });
});
