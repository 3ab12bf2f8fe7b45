import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { shortenId, shortenUrl, withoutQuery } from "../../../web/format/shorten.ts";

describe("shortenId", () => {
  test.each([
    ["evt_01jc8x2m4e7n9q3s5v7y9a1c3e", "evt_01jc…1c3e"],
    ["wh_7m4zk1q8n3b6w0x5c2v9t7r4ye", "wh_7m4z…r4ye"],
    ["svc_sk_0123456789abcdefghij", "svc_sk_0123…ghij"],
    ["t5k2m8q0w3r7xa", "t5k2…r7xa"],
  ])("%p is %p", (id, short) => {
    expect(shortenId(id)).toBe(short);
  });

  test.each(["", "evt_", "t12345678", "evt_12345678", "evt_123456789"])("%p is short enough", (id) => {
    expect(shortenId(id)).toBe(id);
  });
});

describe("shortenUrl", () => {
  test.each([
    ["https://shop.example/hook", 40, "https://shop.example/hook"],
    ["https://shop.example/hooks/orders/created/v2", 36, "https://shop.example/…ers/created/v2"],
    ["https://shop.example?key=0123456789&event=order", 34, "https://shop.example?…"],
    ["https://shop.example/hooks/orders/created/v2", 22, "https://shop.example/…"],
    ["http://localhost:3000/a/very/long/path/to/hook", 32, "http://localhost:3000/…h/to/hook"],
    ["https://shop.example/路/订单/非常长的路径/钩子", 28, "https://shop.example/…的路径/钩子"],
  ])("%p in %p is %p", (url, max, short) => {
    expect(shortenUrl(url, max)).toBe(short);
    expect([...short].length).toBeLessThanOrEqual(max);
  });

  test("says nothing of what a query holds, nor does a sentence", () => {
    expect(shortenUrl("https://shop.example/hook?token=s3cret&x=1", 60)).toBe("https://shop.example/hook?…");
    expect(withoutQuery("HTTP 503 from https://shop.example/hook?token=s3cret")).toBe(
      "HTTP 503 from https://shop.example/hook?…",
    );
    expect(withoutQuery("Who is it? https://shop.example/hook")).toBe("Who is it? https://shop.example/hook");
  });

  test("a host that leaves no room is shortened, too", () => {
    const short = shortenUrl("https://a-very-long-name-of-a-host.example/hook", 20);
    expect(short).toBe("https://a-…mple/hook");
  });

  test("is never longer than it may be, nor cut inside a character", () => {
    fc.assert(
      fc.property(fc.webUrl(), fc.string({ unit: "binary" }), fc.integer({ min: 2, max: 60 }), (url, end, max) => {
        const short = shortenUrl(`${url}/${end}`, max);
        expect([...short].length).toBeLessThanOrEqual(max);
        expect(short.isWellFormed()).toBe(true);
      }),
    );
  });
});
