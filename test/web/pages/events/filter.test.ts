import { describe, expect, test } from "bun:test";
import {
  canGrow,
  choose,
  droppedOf,
  type Filter,
  isChoosing,
  longestSearch,
  everything as nothing,
  readFilter,
  requestOf,
  urlOf,
} from "../../../../web/pages/events/filter.ts";

const now = Date.UTC(2026, 2, 1, 12);
const noon = "2026-03-01T12:00:00.000Z";
const morning = "2026-03-01T08:00:00.000Z";

const longest = "a".repeat(longestSearch);

const queryOf = (url: string) => Object.fromEntries(new URL(url, "http://x").searchParams);
const read = (url: string) => readFilter(queryOf(url));

describe("the filter of the list", () => {
  test.each<[string, Partial<Filter>]>([
    ["/events", {}],
    ["/events?state=failed", { state: "failed" }],
    ["/events?webhook=https%3A%2F%2Fshop.example%2Fhook%3Fa%3D1", { webhook: "https://shop.example/hook?a=1" }],
    ["/events?time=24h", { span: "24h" }],
    ["/events?state=skipped&type=order.paid", { state: "skipped", type: "order.paid" }],
    ["/events?code=timeout", { code: "timeout" }],
    ["/events?state=failed&replay=rpl_1", { state: "failed", replay: "rpl_1" }],
    ["/events?status=404&q=ada%40example.com", { status: "404", q: "ada@example.com" }],
    ["/events?status=999", { status: "999" }],
    [`/events?from=${encodeURIComponent(morning)}`, { span: "custom", from: morning }],
    [`/events?page=3&until=${encodeURIComponent(noon)}`, { page: 3, until: noon }],
  ])("stands in the URL as %s and is read from it again", (url, filter) => {
    expect(read(url)).toEqual({ ...nothing, ...filter });
    expect(urlOf({ ...nothing, ...filter })).toBe(url);
  });

  test.each([
    ["state=FAILED", "state=failed"],
    ["state=pending", "state=waiting"],
    ["state=lost&time=century&page=-1&from=yesterday&until=soon", ""],
    ["page=1.5", ""],
    ["time=toString", ""],
    ["state=SKIPPED", "state=skipped"],
    ["code=http_status&status=404", "status=404"],
    ["code=http_status", "code=http_status"],
    ["code=bad_luck&status=99&q=%20", ""],
    ["time=1h&from=2026-03-01T08:00Z", "time=1h"],
    ["from=2026-03-01T08:00Z", "from=2026-03-01T08%3A00%3A00.000Z"],
    ["to=2026-13-01T08:00:00Z", ""],
  ])("understands ?%s as ?%s", (given, meant) => {
    expect(urlOf(read(`/events?${given}`))).toBe(meant === "" ? "/events" : `/events?${meant}`);
  });

  test.each<[string, string[]]>([
    ["", []],
    ["state=PENDING&type=a&webhook=wh_1&status=404&q=ada&replay=rpl_1&time=1h&page=2", []],
    [`code=timeout&from=${morning}&to=${noon}&until=${noon}`, []],
    ["state=&code=&q=%20&page=-1", []],
    ["code=http_status&status=404", []],
    ["state=bogus&type=a", ["state=bogus"]],
    ["code=bad_luck&status=99", ["code=bad_luck", "status=99"]],
    ["from=banana&time=century&until=soon", ["from=banana", "time=century", "until=soon"]],
    ["time=1h&from=2026-03-01T08:00Z", ["from=2026-03-01T08:00Z"]],
    ["stat=failed", ["stat=failed"]],
    [`q=%20${longest}%20`, []],
    [`q=${longest}a`, [`q=${longest}a`]],
  ])("?%s leaves out %j", (given, dropped) => {
    expect(droppedOf(queryOf(`/events?${given}`))).toEqual(dropped);
  });

  test("begins at the newest of its first page when something else is chosen", () => {
    const third: Filter = { ...nothing, state: "failed", page: 3, until: noon };
    expect(choose(third, { span: "1h" })).toEqual({ ...nothing, state: "failed", span: "1h" });
  });
});

describe("what is asked of the server", () => {
  const lean = { page: 0, size: 50, payload: "start" };

  test.each<[Partial<Filter>, string, Record<string, unknown>]>([
    [{}, "/v1/events", {}],
    [{ state: "waiting" }, "/v1/events/state/PENDING", {}],
    [{ state: "delivered", webhook: "wh_1" }, "/v1/events/state/DELIVERED", { webhook: "wh_1" }],
    [{ span: "10m" }, "/v1/events", { from: "2026-03-01T11:50:00.000Z" }],
    [{ span: "1h" }, "/v1/events", { from: "2026-03-01T11:00:00.000Z" }],
    [{ span: "custom", from: morning, to: noon }, "/v1/events", { from: morning, to: noon }],
    [{ page: 2, until: noon }, "/v1/events", { page: 1, to: noon }],
    [
      { state: "failed", type: "order.paid", status: "404", q: "ada" },
      "/v1/events/state/FAILED",
      { q: "ada", type: "order.paid", status: "404" },
    ],
    [{ replay: "rpl_1" }, "/v1/events", { replay: "rpl_1" }],
    [{ code: "timeout", webhook: "wh_1" }, "/v1/events", { webhook: "wh_1", code: "timeout" }],
    [{ page: 2, until: morning, span: "1h" }, "/v1/events", { page: 1, from: morning, to: morning }],
    [{ page: 2, until: noon, span: "custom", to: morning }, "/v1/events", { page: 1, to: morning }],
    [{ page: 2, until: morning, span: "custom", to: noon }, "/v1/events", { page: 1, to: morning }],
  ])("%j is %s with %j", (filter, path, query) => {
    expect(requestOf({ ...nothing, ...filter }, now, "")).toEqual({ path, query: { ...lean, ...query } });
  });

  test("is what was there when the list was read, so that no row moves", () => {
    expect(requestOf(nothing, now, morning).query).toEqual({ ...lean, to: morning });
  });
});

test.each<[Partial<Filter>, boolean]>([
  [{}, true],
  [{ state: "failed", span: "7d" }, true],
  [{ page: 2 }, false],
  [{ until: noon }, false],
  [{ span: "custom", to: morning }, false],
  [{ span: "custom", to: "2026-03-02T00:00:00.000Z" }, true],
])("whether %j can grow by what arrives now: %p", (filter, expected) => {
  expect(canGrow({ ...nothing, ...filter }, now)).toBe(expected);
});

test.each<[Partial<Filter>, boolean]>([
  [{}, false],
  [{ page: 3, until: noon }, false],
  [{ q: "ada" }, true],
  [{ code: "timeout" }, true],
])("whether %j leaves anything out: %p", (filter, expected) => {
  expect(isChoosing({ ...nothing, ...filter })).toBe(expected);
});
