import { expect, test } from "bun:test";
import { auditActions, isCounted, webhookListDetail } from "../../src/domain/audit.ts";
import { newStanding, usualSettings, type Webhook } from "../../src/domain/webhook.ts";

const webhook = (url: string, settings: Partial<Webhook> = {}): Webhook => ({
  ...{ key: 1, id: "wh_1", url, name: "Shop", ...usualSettings, ...newStanding },
  ...settings,
});
const a = webhook("https://a.example/hook?token=secret#part");
const b = webhook("https://b.example/");
const sealed = (text: string) => ({ sealedHeaders: new TextEncoder().encode(text) });

const rows: readonly [string, Webhook[], Webhook[], unknown][] = [
  ["nothing", [a], [a], null],
  ["the order", [a, b], [b, a], null],
  ["one more", [a], [a, b], { added: ["https://b.example/"] }],
  ["one less, without its query", [a, b], [b], { removed: ["https://a.example/hook"] }],
  ["another one", [a], [b], { added: ["https://b.example/"], removed: ["https://a.example/hook"] }],
  ["a name", [b], [{ ...b, name: "x" }], { changed: ["https://b.example/: webhook_name"] }],
  [
    "settings",
    [b],
    [{ ...b, eventTypes: ["a"], ordered: true, paused: true, rateLimit: 1, maxConcurrency: 2 }],
    {
      paused: ["https://b.example/"],
      changed: ["https://b.example/: event_types, ordered, rate_limit, max_concurrency"],
    },
  ],
  ["one paused", [a, b], [{ ...a, paused: true }, b], { paused: ["https://a.example/hook"] }],
  ["one resumed", [{ ...a, paused: true }, b], [a, b], { resumed: ["https://a.example/hook"] }],
  ["one added that is paused", [a], [a, { ...b, paused: true }], { added: ["https://b.example/"] }],
  ["the same types", [{ ...b, eventTypes: ["a"] }], [{ ...b, eventTypes: ["a"] }], null],
  ["headers, without them", [b], [{ ...b, ...sealed("x") }], { changed: ["https://b.example/: headers"] }],
  ["the same headers", [{ ...b, ...sealed("x") }], [{ ...b, ...sealed("x") }], null],
  ["how it stands", [b], [{ ...b, disabled: { at: 1, reason: "gone" } }], null],
];

test.each(rows)("an entry about webhooks says what changed: %s", (_, before, after, detail) => {
  expect(webhookListDetail(before, after)).toEqual(detail as ReturnType<typeof webhookListDetail>);
});

test("an entry about a long list is short", () => {
  const many = Array.from({ length: 25 }, (_, n) => webhook(`https://${n}.example/${"x".repeat(300)}`));
  const { added } = webhookListDetail([], many) as { added: string[] };
  expect(added).toHaveLength(21);
  expect(added[0]).toBe(`${many[0]?.url.slice(0, 200)}…`);
  expect(added[20]).toBe("and 5 more");
});

test("what says in its detail what it changed is never counted with others: only the first would be told", () => {
  const by = { actor: "operator", via: null, address: null } as const;
  expect(auditActions.filter((action) => isCounted({ ...by, action }))).toEqual([
    ...(["api_key.shown", "event.replayed", "login", "login.failed", "operator.login", "operator.refused"] as const),
    "signing_secret.shown",
  ]);
});
