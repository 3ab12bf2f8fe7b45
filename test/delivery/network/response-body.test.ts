import { describe, expect, test } from "bun:test";
import { maxKeptBytes, ResponseBody } from "../../../src/delivery/network/response-body.ts";

/** Rules, section 7: `responseBody` is the first 4 KiB as text. */

function keptOf(...chunks: Uint8Array[]): Uint8Array {
  const body = new ResponseBody(() => {});
  for (const chunk of chunks) body.take(chunk);
  body.end();
  return body.received();
}

const textOf = (bytes: Uint8Array) => new TextDecoder().decode(bytes);

describe("a body that is longer than what is kept", () => {
  test.each(["é", "€", "😀"].flatMap((character) => [0, 1, 2, 3, 4].map((before) => [character, before] as const)))(
    "is not cut inside %s when its first %i bytes would be kept",
    (character, inside) => {
      const start = "x".repeat(maxKeptBytes - inside);
      const isWhole = Buffer.byteLength(character) <= inside;
      const whole = Buffer.from(start + character + "x".repeat(8));
      const rest = isWhole ? character + "x".repeat(inside - Buffer.byteLength(character)) : "";
      expect(textOf(keptOf(whole))).toBe(start + rest);
      // Cut where the limit is, and with what comes in single bytes.
      expect(textOf(keptOf(whole.subarray(0, maxKeptBytes), whole.subarray(maxKeptBytes)))).toBe(start + rest);
      const single = [...whole.subarray(start.length)].map((byte) => Uint8Array.of(byte));
      expect(textOf(keptOf(Buffer.from(start), ...single))).toBe(start + rest);
    },
  );

  test.each([
    ["continuations alone", 0x80],
    ["what never begins a character", 0xff],
  ])("of other bytes stays as it is: %s", (_, byte) => {
    expect(keptOf(new Uint8Array(5000).fill(byte))).toHaveLength(maxKeptBytes);
  });
});

test("a body that ends inside a character has all that came", () => {
  const broken = Buffer.from("x€").subarray(0, 3);
  expect([...keptOf(broken)]).toEqual([...broken]);
  const full = Buffer.concat([Buffer.alloc(maxKeptBytes - 1, "x"), Uint8Array.of(0xe2)]);
  expect(keptOf(full)).toHaveLength(maxKeptBytes);
});
