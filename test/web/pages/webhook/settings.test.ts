import { describe, expect, test } from "bun:test";
import {
  changesOf,
  type Draft,
  editsBeyond,
  toDraft,
  wrongHeaders,
  wrongPattern,
} from "../../../../web/pages/webhook/settings.ts";

const shop = {
  ...{ id: "wh_1", url: "https://shop.example/hook", name: "Shop", state: "active" },
  ...{ event_types: ["order.paid", "refund.*"], paused: false, rate_limit: 10, max_concurrency: null },
  ...{ ordered: false, headers: { Authorization: "••••cret", "X-Shop": "••••" } },
};
const draft = toDraft(shop);

test("the settings stand as one types them", () => {
  expect(draft).toEqual({
    name: "Shop",
    eventTypes: "order.paid\nrefund.*",
    rateLimit: "10",
    maxConcurrency: "",
    ordered: false,
    headers: "Authorization: ••••cret\nX-Shop: ••••",
  });
});

describe("what is saved is what differs", () => {
  test.each<[Partial<Draft>, object]>([
    [{}, {}],
    [{ name: " Books " }, { name: "Books" }],
    [{ eventTypes: " order.paid ,\n\nrefund.*\n" }, {}],
    [{ eventTypes: "order.*" }, { event_types: ["order.*"] }],
    [{ eventTypes: " \n" }, { event_types: null }],
    [{ rateLimit: "" }, { rate_limit: null }],
    [{ rateLimit: " 10 " }, {}],
    [
      { rateLimit: "25", maxConcurrency: "2" },
      { rate_limit: 25, max_concurrency: 2 },
    ],
  ])("%j: %j", (edit, changes) => {
    expect(changesOf(shop, { ...draft, ...edit })).toEqual(changes);
  });
});

test("what others save meanwhile is neither taken back nor shown as it was before", () => {
  const typed = { name: "Books" };
  const now = { ...shop, event_types: ["order.*"], rate_limit: null, headers: { "X-Key": "••••" } };
  expect({ ...toDraft(now), ...typed }).toMatchObject({ name: "Books", eventTypes: "order.*", rateLimit: "" });
  expect(changesOf(now, { ...toDraft(now), ...typed })).toEqual({ name: "Books" });
});

test.each<[string, Partial<Draft>, Partial<Draft>, Partial<Draft>]>([
  ["what is typed back is no edit", { name: "Shop", rateLimit: "25" }, draft, { rateLimit: "25" }],
  ["what was saved is one no longer", { name: "Books" }, { name: "Books" }, {}],
  [
    "what was typed while it was saved still is",
    { name: "Books!", rateLimit: "25", ordered: true },
    { name: "Books", ordered: true },
    { name: "Books!", rateLimit: "25" },
  ],
])("%s", (_, edits, known, left) => {
  expect(editsBeyond(edits, known)).toEqual(left);
});

test.each([
  ["event_types[1]", "must be words", "“refund.*” must be words."],
  ["event_types", "must have at most 50 patterns", "The types must have at most 50 patterns."],
  ["rate_limit", "must be at least 1", null],
])("a refusal of %s is about a type: %s", (field, rule, said) => {
  expect(wrongPattern({ field, rule }, draft)).toBe(said);
  expect(wrongPattern(null, draft)).toBeNull();
});

test("two headers with one name are a slip", () => {
  expect(wrongHeaders(draft)).toBeNull();
  expect(wrongHeaders({ ...draft, headers: "X-Shop: 1\nx-shop: 2" })).toBe("“x-shop” is listed twice.");
});
