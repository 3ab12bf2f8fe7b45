import { describe, expect, test } from "bun:test";
import { everything, type Filter } from "../../../../web/pages/events/filter.ts";
import type { ListedRecord } from "../../../../web/pages/events/record.ts";
import {
  againInWords,
  disabledFor,
  eventsIn,
  replayTheseOf,
  restOf,
  takenBy,
  targetInWords,
  toUnacknowledged,
  urlOfReplayed,
} from "../../../../web/pages/events/replay-these.ts";

const now = Date.UTC(2026, 2, 1, 12);
const held = "2026-03-01T11:59:00.000Z";
const shop = { id: "wh_1", url: "https://shop.example/hook", name: "Shop" };
const record = (targetWebhook: string, state = "FAILED", eventId = "evt_1"): ListedRecord => ({
  ...{ eventId, tenantId: "t", state, ingestionTimestamp: held, targetWebhook, eventType: null },
  ...{
    errorReason: null,
    errorCode: null,
    statusCode: null,
    attempts: 1,
    lastAttemptAt: null,
    lastDurationMs: null,
    nextAttemptAt: null,
  },
  replayGroupId: null,
});
const records = [record(shop.url), record(shop.url)];
const listed = { total: 172, totalIsExact: true, readAt: now, held, records };
const given = (filter: Partial<Filter>) => ({ ...everything, ...filter });

test.each([
  [
    "each of them, on one page",
    { total: 2, records: [record("a", "FAILED", "e1"), record("a", "FAILED", "e2")] },
    {},
    2,
  ],
  ["one for two webhooks once", { total: 2, records: [record("a"), record("b")] }, {}, 1],
  ["as many as its deliveries, if they are of one webhook", listed, { webhook: shop.id }, 172],
  ["nobody knows how many, if they may be of several", listed, {}, null],
])("the events of a list are %s", (_, of, fields, events) => {
  expect(eventsIn(of, fields)).toBe(events);
});

describe("a list is replayed by what selects the same", () => {
  test.each<[Partial<Filter>, string, Record<string, unknown>]>([
    [{}, "all", { to: held }],
    [{ state: "failed" }, "failed", { to: held }],
    [{ type: "order.paid" }, "all", { type: "order.paid", to: held }],
    [
      { state: "failed", webhook: "wh_1", status: "404", span: "1h" },
      "failed",
      { webhook: "wh_1", status: 404, from: "2026-03-01T11:00:00.000Z", to: held },
    ],
    [{ webhook: shop.url, code: "timeout" }, "all", { webhook: shop.url, code: "timeout", to: held }],
    [{ page: 2, until: "2026-03-01T10:00:00.000Z" }, "all", { to: "2026-03-01T10:00:00.000Z" }],
  ])("%j: %s with %j", (filter, kind, fields) => {
    expect(replayTheseOf(given(filter), listed, [shop])).toEqual({
      ...{ by: "selection", kind, fields },
      ...{ text: "Replay these 172 …", words: "172 deliveries", mustAsk: true },
    } as never);
  });

  test.each<[Partial<typeof listed>, string, boolean]>([
    [{ total: 1 }, "Replay this one", false],
    [{ total: 100 }, "Replay these 100", false],
    [{ total: 101 }, "Replay these 101 …", true],
    [{ total: 10_000, totalIsExact: false }, "Replay these more than 10\u202f000 …", true],
  ])("%j: %s", (of, text, mustAsk) => {
    const filter = given({ state: "failed", type: "order.paid", webhook: shop.id });
    const these = replayTheseOf(filter, { ...listed, ...of }, [shop]);
    expect(these).toMatchObject({ text, mustAsk });
  });

  test.each<[string, Partial<Filter>, Partial<typeof listed>, boolean]>([
    ["for what has failed", { type: "order.paid" }, { total: 2 }, false],
    [
      "where something was acknowledged",
      { type: "order.paid" },
      { total: 2, records: [record(shop.url), record(shop.url, "DELIVERED")] },
      true,
    ],
    ["where other pages may have what was acknowledged", { type: "order.paid" }, { total: 60 }, true],
    [
      "for a reason, which only failures have",
      { status: "404" },
      { total: 2, records: [record(shop.url), record(shop.url, "DELIVERED")] },
      false,
    ],
    ["where other pages may list an event again", { state: "failed", type: "order.paid" }, { total: 60 }, true],
    [
      "for one webhook, of whose events each is listed once",
      { state: "failed", webhook: shop.id },
      { total: 60 },
      false,
    ],
  ])("a question is asked %s: %j", (_, filter, of, mustAsk) => {
    expect(replayTheseOf(given(filter), { ...listed, ...of }, [shop])).toMatchObject({ mustAsk });
  });

  test("a question is asked where a payload was erased, which it says", () => {
    const erased = { ...record(shop.url), payloadErased: true as const };
    const these = replayTheseOf(given({ type: "order.paid" }), { ...listed, total: 2, records: [erased] }, [shop]);
    expect(these).toMatchObject({ mustAsk: true });
    const found = replayTheseOf(given({ q: "Ada" }), { ...listed, total: 2, records: [erased, record(shop.url)] }, [
      shop,
    ]);
    expect(found).toMatchObject({ by: "page", records: [record(shop.url)], text: "Replay 1 of the 2 on this page" });
    expect(replayTheseOf(given({ q: "Ada" }), { ...listed, total: 1, records: [erased] }, [shop])).toBeNull();
  });

  const books = { id: "wh_2", url: "https://books.example/hook", name: "Books" };
  const of = (...urls: string[]) => ({ total: urls.length, records: urls.map((url) => record(url)) });
  test.each<[string, Partial<Filter>, Partial<typeof listed>, string | undefined, boolean]>([
    ["to the one webhook that all of it is of", {}, of(shop.url, shop.url), "wh_1", false],
    ["also for a reason, which asks for what failed so elsewhere", { status: "404" }, of(books.url), "wh_2", true],
    ["after a question if it is of several", {}, of(shop.url, books.url), undefined, true],
    ["after a question if other pages may have others", {}, { total: 3 }, undefined, true],
    ["after a question if the webhook was removed", {}, of("https://gone.example"), undefined, true],
    ["to the webhook that was chosen", { webhook: "wh_1" }, { total: 3 }, "wh_1", false],
  ])("what failed goes nowhere else, where it may wait for a retry: %s", (_, filter, some, webhook, mustAsk) => {
    const chosen = given({ state: "failed", ...filter });
    const these = replayTheseOf(chosen, { ...listed, ...some }, [shop, books]);
    expect(these).toMatchObject({ kind: "failed", mustAsk });
    expect(these && takenBy(these, chosen)).toEqual({ ...chosen, webhook: webhook ?? "" });
  });

  test("a question is asked of everything, however little that is", () => {
    const these = replayTheseOf(given({}), { ...listed, total: 2 }, [shop]);
    expect(these).toMatchObject({ text: "Replay these 2 …", mustAsk: true });
  });
});

describe("what no replay selects is replayed as the page shows it", () => {
  test.each<[Partial<Filter>]>([
    [{ q: "ada" }],
    [{ replay: "rpl_1" }],
    [{ state: "delivered" }],
    [{ state: "waiting" }],
    [{ state: "skipped" }],
    [{ webhook: "wh_gone" }],
  ])("%j", (filter) => {
    expect(replayTheseOf(given(filter), listed, [shop])).toEqual({
      ...{ by: "page", records, text: "Replay the 2 on this page", words: "2 deliveries", again: "", mustAsk: false },
    } as never);
  });

  test("without those of webhooks that are gone", () => {
    const mixed = { ...listed, total: 3, records: [record(shop.url), record("https://gone.example"), record("")] };
    const these = replayTheseOf(given({ q: "ada" }), mixed, [shop]);
    expect(these).toMatchObject({
      text: "Replay 2 of the 3 on this page",
      records: [mixed.records[0], mixed.records[2]],
    });
    const all = { ...listed, total: 2 };
    expect(replayTheseOf(given({ q: "ada" }), all, [shop])).toMatchObject({ text: "Replay these 2" });
  });
});

describe("nothing is replayed to a webhook that is disabled", () => {
  const off = { ...shop, state: "disabled" };
  const books = { id: "wh_2", url: "https://books.example/hook", name: "Books" };
  const whole = { ...listed, total: 2 };
  const mixed = { ...whole, records: [record(shop.url), record(books.url)] };
  test.each<[string, Partial<Filter>, typeof listed, (typeof shop)[], (typeof shop)[]]>([
    ["where it is chosen", { webhook: "wh_1" }, listed, [off, books], [off]],
    ["where all that is listed is of it, and is replayed for a reason", { status: "410" }, whole, [off, books], [off]],
    ["where all that is listed is of it, and is replayed one by one", { q: "ada" }, whole, [off, books], [off]],
    ["where no other is enabled", {}, listed, [off, { ...books, state: "disabled" }], [off]],
    ["but to the others", { state: "failed" }, mixed, [off, books], []],
    ["but to the others, though all that failed is of it", { state: "failed" }, whole, [off, books], []],
    ["but to the others, though all that is listed is of it", { type: "order.paid" }, whole, [off, books], []],
    ["but where other pages may have others", { state: "failed" }, listed, [off, books], []],
  ])("%s", (_, filter, some, webhooks, disabled) => {
    expect(disabledFor(given(filter), some, webhooks) ?? null).toEqual(disabled[0] ?? null);
    expect(replayTheseOf(given(filter), some, webhooks) === null).toBe(disabled.length > 0);
  });

  test("what failed there goes to the others, after a question", () => {
    const chosen = given({ state: "failed" });
    const these = replayTheseOf(chosen, whole, [off, books]);
    expect(these).toMatchObject({ kind: "failed", fields: { to: held }, mustAsk: true });
    expect(these && takenBy(these, chosen)).toEqual(chosen);
  });

  test("nor of a page that lists it among others", () => {
    expect(replayTheseOf(given({ q: "ada" }), mixed, [off, books])).toMatchObject({
      records: [mixed.records[1]],
      text: "Replay 1 of the 2 on this page",
    });
  });
});

describe("who would get something again is said", () => {
  const books = { id: "wh_2", url: "https://books.example/hook", name: "Books" };
  const delivered = (webhook: { url: string }, n: number) => record(webhook.url, "DELIVERED", `evt_${n}`);
  const failed = (webhook: { url: string }, n: number) => record(webhook.url, "FAILED", `evt_${n}`);

  test.each<[string, ListedRecord[]]>([
    ["", [failed(shop, 1), failed(books, 2)]],
    ["Shop acknowledged the event already, and would get it again.", [delivered(shop, 1)]],
    [
      "Shop and Books acknowledged the event already, and would get it again.",
      [delivered(shop, 1), delivered(books, 1)],
    ],
    ["1 of them was acknowledged already, and Shop would get it again.", [delivered(shop, 1), failed(books, 2)]],
    [
      "2 of them were acknowledged already, and Shop and Books would get them again.",
      [delivered(shop, 1), delivered(books, 2), failed(shop, 3)],
    ],
    ["All of them were acknowledged already, and Shop would get them again.", [delivered(shop, 1), delivered(shop, 2)]],
    ["", [delivered({ url: "https://gone.example" }, 1), failed(shop, 2)]],
  ])("%p", (words, listed) => {
    expect(againInWords(listed, [shop, books])).toBe(words);
  });

  test("and not of one that no longer takes the type", () => {
    const refunds = { ...books, event_types: ["refund.*"] };
    const refund = { ...delivered(refunds, 1), eventType: "refund.made" };
    const order = { ...delivered(refunds, 2), eventType: "order.paid" };
    expect(againInWords([order], [shop, refunds])).toBe("");
    expect(againInWords([refund, order], [shop, refunds])).toBe(
      "1 of them was acknowledged already, and Books would get it again.",
    );
  });

  test("before a page is replayed", () => {
    const records = [delivered(shop, 1), failed(books, 2)];
    expect(replayTheseOf(given({ q: "ada" }), { ...listed, total: 2, records }, [shop, books])).toMatchObject({
      ...{ text: "Replay these 2 …", again: againInWords(records, [shop, books]), mustAsk: true },
    });
  });
});

test("of a page that was accepted in part, only the rest is replayed", () => {
  const [first, second] = [record(shop.url, "DELIVERED", "evt_1"), record(shop.url, "FAILED", "evt_2")];
  const these = replayTheseOf(given({ q: "ada" }), { ...listed, total: 2, records: [first, second] }, [shop]);
  if (these?.by !== "page") throw new Error("It is replayed one by one.");
  expect(these.again).not.toBe("");
  expect(restOf(these, [second], [shop])).toMatchObject({ records: [second], words: "1 delivery", again: "" });
});

test.each<[string, Parameters<typeof replayTheseOf>]>([
  ["nothing matches", [given({ state: "failed" }), { ...listed, total: 0, records: [] }, [shop]]],
  ["it is not known what is registered", [given({}), listed, undefined]],
  ["all of it is of webhooks that are gone", [given({ webhook: "wh_gone" }), listed, [{ ...shop, url: "x" }]]],
  ["it has nowhere to go", [given({ q: "ada" }), { ...listed, records: [record("")] }, []]],
])("there is nothing to replay when %s", (_, given) => {
  expect(replayTheseOf(...given)).toBeNull();
});

test.each<[string, Partial<Filter>, "failed" | "all", string[]]>([
  ["to Shop", { webhook: "Shop" }, "failed", ["Shop", "Books"]],
  ["to the webhooks where they failed like this", { status: "404" }, "all", ["Shop", "Books"]],
  [toUnacknowledged, { state: "failed" }, "failed", ["Shop", "Books"]],
  [toUnacknowledged, { state: "failed" }, "failed", ["Shop", "Books, disabled"]],
  [
    "to the webhooks where they failed like this, or wait for a retry after it",
    { state: "failed", status: "404" },
    "failed",
    ["Shop", "Books"],
  ],
  ["to the webhooks where they failed like this", { status: "404" }, "all", ["Shop"]],
  ["to Shop", { state: "failed" }, "failed", ["Shop"]],
  ["to Shop", {}, "all", ["Shop"]],
  ["to Shop", {}, "all", ["Shop", "Books, disabled"]],
  ["to Shop, Books and Audit", {}, "all", ["Shop", "Books", "Audit"]],
  ["to all 4 webhooks", {}, "all", ["1", "2", "3", "4"]],
])("it goes %s for %j: %s of %j", (words, filter, kind, names) => {
  const webhooks = names.map((each) => {
    const [name = "", state = "enabled"] = each.split(", ");
    return { id: name, url: `https://example.com/${name}`, name, state };
  });
  expect(targetInWords(kind, given(filter), webhooks)).toBe(words);
});

test("what was replayed is listed whatever became of it", () => {
  const filter = given({ state: "failed", status: "404", q: "ada", page: 2 });
  expect(urlOfReplayed(filter, listed)).toBe("/events?q=ada&to=2026-03-01T11%3A59%3A00.000Z");
});
