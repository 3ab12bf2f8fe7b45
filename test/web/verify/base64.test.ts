import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { fromBase64, fromBase64Url, toBase64 } from "../../../web/verify/base64.ts";

describe("base64", () => {
  test("reads what others write, and writes what they read", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        const buffer = Buffer.from(bytes);
        expect(toBase64(bytes)).toBe(buffer.toString("base64"));
        expect(fromBase64(buffer.toString("base64"))).toEqual(bytes);
        expect(fromBase64Url(buffer.toString("base64url"))).toEqual(bytes);
      }),
    );
  });

  test("each alphabet has its own characters", () => {
    const bytes = Uint8Array.from([0xfb, 0xff, 0xfe]);
    expect([fromBase64("+//+"), fromBase64Url("-__-")]).toEqual([bytes, bytes]);
    expect([fromBase64("-__-"), fromBase64Url("+//+")]).toEqual([null, null]);
  });

  test.each(["A", "AA", "AAA", "A===", "====", "AA=A", "AAAA\n", " AAAA", "AAAA=", "é==="])("%j is none", (text) => {
    expect(fromBase64(text)).toBeNull();
  });

  test.each(["A", "AAAAA", "AA==", "AA AA", "é"])("%j is none for URLs", (text) => {
    expect(fromBase64Url(text)).toBeNull();
  });
});
