import { describe, expect, test } from "bun:test";
import { chipsOf, webhookInWords } from "../../../../web/pages/events/chips.ts";
import { everything, type Filter } from "../../../../web/pages/events/filter.ts";

const shop = { id: "wh_1", url: "https://shop.example/hook?token=s3cret", name: "Shop" };
const nameless = { id: "wh_2", url: "https://books.example:8443/hook", name: "" };
const webhooks = [shop, nameless];

describe("what a list is narrowed to", () => {
  test.each<[Partial<Filter>, string, Partial<Filter>]>([
    [{ state: "failed" }, "Failed", { state: "" }],
    [{ type: "order.paid" }, "order.paid", { type: "" }],
    [{ webhook: "wh_1" }, "Shop", { webhook: "" }],
    [{ webhook: nameless.url }, "books.example:8443", { webhook: "" }],
    [{ status: "404" }, "HTTP 404", { code: "", status: "" }],
    [{ code: "http_status" }, "Any HTTP error", { code: "", status: "" }],
    [{ code: "timeout" }, "No response within 10 s", { code: "", status: "" }],
    [{ code: "timeout", status: "404" }, "No response within 10 s, HTTP 404", { code: "", status: "" }],
    [{ replay: "rpl_4c8x1m7q0z5k2w9t6r3v8y1n4b" }, "Replay rpl_4c8x…1n4b", { replay: "" }],
    [{ q: "ada@example.com" }, "“ada@example.com”", { q: "" }],
    [{ span: "24h" }, "Last 24 hours", { span: "", from: "", to: "" }],
    [{ span: "custom", from: "2026-03-01T08:00:00.000Z" }, /^Since 2026-/ as never, { span: "", from: "", to: "" }],
  ])("%j is one chip: %s", (filter, text, without) => {
    const given = { ...everything, ...filter };
    expect(chipsOf(given, webhooks)).toEqual([
      { text: typeof text === "string" ? text : expect.stringMatching(text), without },
    ]);
    expect({ ...given, ...without }).toEqual(everything);
  });

  test("is nothing, or all together", () => {
    expect(chipsOf(everything, webhooks)).toEqual([]);
    expect(chipsOf({ ...everything, state: "failed", status: "404", q: "ada" }, undefined)).toHaveLength(3);
  });
});

test.each([
  ["wh_1", "Shop"],
  [shop.url, "Shop"],
  ["wh_2", "books.example:8443"],
  ["https://gone.example/hook?token=s3cret", "gone.example"],
  ["wh_gone", "wh_gone"],
])("people know %s as %s", (idOrUrl, words) => {
  expect(webhookInWords(idOrUrl, webhooks)).toBe(words);
});
