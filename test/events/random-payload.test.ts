import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { batch, decode, encode, outcome, slice, slicePayload } from "./sliced.ts";

const space = fc.stringMatching(/^[ \t\r\n]{0,2}$/);
const stringText = fc
  .array(
    fc.oneof(
      fc.string({ unit: "binary", maxLength: 4 }).map((text) => JSON.stringify(text).slice(1, -1)),
      fc.constantFrom(
        "\\u0041",
        "\\ud83d",
        "\\/",
        "\\b",
        "\\\\",
        '\\"',
        "é",
        "漢字",
        "🦉",
        "\u2028",
        "\u007f",
        "payload",
        "__proto__",
      ),
    ),
    { maxLength: 3 },
  )
  .map((parts) => `"${parts.join("")}"`);
const numberText = fc.stringMatching(/^-?(0|[1-9][0-9]{0,24})(\.[0-9]{1,5})?([eE][+-]?[0-9]{1,3})?$/);
const { value: jsonText, object: objectText } = fc.letrec<{ value: string; array: string; object: string }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    fc.constantFrom("true", "false", "null"),
    numberText,
    stringText,
    tie("array"),
    tie("object"),
  ),
  array: fc
    .tuple(
      space,
      fc.array(
        fc.tuple(space, tie("value"), space).map((parts) => parts.join("")),
        { maxLength: 4 },
      ),
    )
    .map(([empty, items]) => `[${items.length > 0 ? items.join(",") : empty}]`),
  object: fc
    .tuple(
      space,
      fc.array(
        fc
          .tuple(
            space,
            fc.oneof(stringText, fc.constantFrom('"payload"', '"a"', '"__proto__"')),
            space,
            space,
            tie("value"),
            space,
          )
          .map(([before, key, colon, after, value, end]) => `${before}${key}${colon}:${after}${value}${end}`),
        { maxLength: 4 },
      ),
    )
    .map(([empty, members]) => `{${members.length > 0 ? members.join(",") : empty}}`),
}));

/** Bytes that turn up in JSON or break it. */
const byte = fc.oneof(
  fc.constantFrom(...encode('{}[]",:\\ \n\t0123456789+-.eEtrufalsnpyod')),
  fc.constantFrom(0, 0x1f, 0x7f, 0x80, 0xbf, 0xc0, 0xc3, 0xe2, 0xed, 0xf0, 0xf4, 0xff),
);

/** One change: `length` bytes at a relative place are replaced by others. */
const change = fc.record({
  at: fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
  length: fc.nat({ max: 3 }),
  by: fc.array(byte, { maxLength: 3 }),
});

const mutated = (text: fc.Arbitrary<string>) =>
  fc.tuple(text, fc.array(change, { maxLength: 3 })).map(([original, changes]) => {
    const bytes = [...encode(original)];
    for (const { at, length, by } of changes) bytes.splice(Math.floor(at * (bytes.length + 1)), length, ...by);
    return new Uint8Array(bytes);
  });

describe("on random JSON", () => {
  test("the payload is the text that was put in", () => {
    const otherMember = fc
      .tuple(
        stringText.filter((key) => JSON.parse(key) !== "payload"),
        jsonText,
      )
      .map(([key, value]) => `${key}:${value}`);
    fc.assert(
      fc.property(
        fc.array(otherMember, { maxLength: 2 }),
        objectText,
        fc.array(otherMember, { maxLength: 2 }),
        space,
        (before, payload, after, gap) => {
          const body = `${gap}{${[...before, `"payload"${gap}:${gap}${payload}`, ...after].join()}${gap}}${gap}`;
          expect(slice(body)).toBe(payload);
          expect(batch(`{"events":[${body},${body}]}`)).toEqual([payload, payload]);
        },
      ),
      { numRuns: 500 },
    );
  });

  test("the scanner accepts what JSON.parse accepts, apart from its own rules, and nothing else", () => {
    const seen = { accepted: 0, notJson: 0, ownRule: 0 };
    const body = fc.oneof(
      { weight: 3, arbitrary: objectText.map((payload) => `{"payload":${payload}}`) },
      { weight: 1, arbitrary: jsonText.map((value) => `{"a":${value},"payload":${value}}`) },
      { weight: 1, arbitrary: objectText },
    );
    fc.assert(
      fc.property(mutated(body), (bytes) => {
        const parsed = parseBytes(bytes);
        const result = outcome(() => slicePayload(bytes));
        if (result === "invalid_json" || result === "invalid_utf8") {
          seen.notJson++;
          expect(parsed).toBeUndefined();
        } else if (typeof result === "string") {
          // One of our own rules. It may be met before bytes that are no JSON, so nothing follows about `parsed`, unless it is read.
          seen.ownRule++;
          if (parsed) expect(brokenRules(parsed.value, decode(bytes))).toContain(result);
        } else {
          seen.accepted++;
          expect(parsed).toBeDefined();
          const whole = parsed?.value as { payload: unknown };
          expect(brokenRules(whole, "")).toEqual([]);
          expect(JSON.stringify(JSON.parse(decode(result)))).toBe(JSON.stringify(whole.payload));
        }
      }),
      { numRuns: 4000 },
    );
    // The property means something only if every branch was taken often.
    expect(Math.min(seen.accepted, seen.notJson, seen.ownRule)).toBeGreaterThan(100);
  });

  test("what the single endpoint accepts, the batch accepts", () => {
    fc.assert(
      fc.property(mutated(objectText.map((payload) => `{"payload":${payload}}`)), (bytes) => {
        const alone = slice(bytes);
        const inBatch = batch(new Uint8Array([...encode('{"events":['), ...bytes, ...encode("]}")]));
        if (alone.startsWith("{")) expect(inBatch).toEqual([alone]);
      }),
      { numRuns: 1000 },
    );
  });
});

function parseBytes(bytes: Uint8Array): { value: unknown } | undefined {
  try {
    return { value: JSON.parse(decode(bytes)) as unknown };
  } catch {
    return undefined;
  }
}

/**
 * The rules of ours that a body breaks. Of two members of one name a parsed value shows the last only, so where the text
 * has the name twice, the first one may break a rule unseen.
 */
function brokenRules(value: unknown, text: string): string[] {
  const isObject = (candidate: unknown) =>
    typeof candidate === "object" && candidate !== null && !Array.isArray(candidate);
  if (!isObject(value)) return ["body_not_object"];
  if (!Object.hasOwn(value as object, "payload")) return ["payload_required"];
  if (text.split('"payload"').length > 2) return ["payload_duplicate", "payload_not_object"];
  return isObject((value as { payload: unknown }).payload) ? [] : ["payload_not_object"];
}
