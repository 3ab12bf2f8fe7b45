import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { createBodies } from "../../src/cli/send/bodies.ts";
import { createLineSplitter, isBlank } from "../../src/cli/send/lines.ts";
import { maxBatchBytes } from "../../src/events/ingest-routes.ts";
import { sliceBatch, sliceEvent } from "../../src/events/payload.ts";

const utf8 = new TextDecoder();
const bytes = (text: string) => new TextEncoder().encode(text);

/** Cuts text at the given places and splits the pieces into lines. */
function split(text: string, cuts: readonly number[], longest = 1_000) {
  const splitter = createLineSplitter(longest);
  const whole = bytes(text);
  const places = [...new Set([0, ...cuts.map((cut) => cut % (whole.length + 1)), whole.length])].sort((a, b) => a - b);
  const lines = places.slice(1).flatMap((end, i) => splitter.push(whole.slice(places[i], end)));
  return [...lines, ...splitter.end()].map((line) => ({
    number: line.number,
    text: line.bytes === null ? null : utf8.decode(line.bytes),
  }));
}

describe("a line splitter", () => {
  test("finds the lines of a text wherever it is cut, also inside a character", () => {
    const text = fc.array(fc.constantFrom("a", "ü", "€", "\u{1f600}", "\n", "\r\n", "", "{}"), { maxLength: 30 });
    fc.assert(
      fc.property(text, fc.array(fc.nat()), (parts, cuts) => {
        const whole = parts.join("");
        const expected = whole.split("\n");
        if (expected.at(-1) === "") expected.pop();
        expect(split(whole, cuts)).toEqual(expected.map((line, i) => ({ number: i + 1, text: line })));
      }),
    );
  });

  test("passes over a line that is too long, and counts it", () => {
    fc.assert(
      fc.property(fc.array(fc.nat()), (cuts) => {
        expect(split(`a\n${"b".repeat(11)}\n${"c".repeat(10)}\n${"d".repeat(11)}`, cuts, 10)).toEqual([
          { number: 1, text: "a" },
          { number: 2, text: null },
          { number: 3, text: "cccccccccc" },
          { number: 4, text: null },
        ]);
      }),
    );
  });

  test.each([
    ["", true],
    [" \t\r", true],
    ["{}", false],
    ["\u00a0", false],
  ])("%p is blank: %p", (text, expected) => {
    expect(isBlank({ number: 1, bytes: bytes(text) })).toBe(expected);
  });
});

describe.each([
  ["bodies", { eventType: null, orderingKey: null }],
  ["bodies with a type and an ordering key", { eventType: 'a "type" of é', orderingKey: "customer-42" }],
])("%s", (_name, beside) => {
  const bodies = createBodies(beside);
  const payloads = fc.array(
    fc.json().map((json) => bytes(`{"a": ${json}}`)),
    { minLength: 1, maxLength: 20 },
  );

  test("hold the very bytes, and have the length that was reckoned", () => {
    fc.assert(
      fc.property(payloads, (all) => {
        const body = bodies.batch(all);
        expect(sliceBatch(body).map(({ payload, ...rest }) => [utf8.decode(payload), rest])).toEqual(
          all.map((payload) => [utf8.decode(payload), { type: beside.eventType, orderingKey: beside.orderingKey }]),
        );
        // A comma more is reckoned than is needed.
        expect(
          bodies.batchBytes(
            all.length,
            all.reduce((sum, { length }) => sum + length, 0),
          ),
        ).toBe(body.length + 1);
        expect(utf8.decode(sliceEvent(bodies.event(all[0] ?? bytes("{}"))).payload)).toBe(utf8.decode(all[0]));
      }),
    );
  });

  test("the longest payload fits into a batch", () => {
    const payload = bytes(`{"a":"${"x".repeat(bodies.longestPayload - 8)}"}`);
    expect(payload).toHaveLength(bodies.longestPayload);
    expect(bodies.batch([payload]).length).toBeLessThanOrEqual(maxBatchBytes);
  });
});
