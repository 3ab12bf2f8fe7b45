// biome-ignore-all lint/suspicious/noThenProperty: rows of a scenario table have one
import { beforeAll, expect } from "bun:test";
import { closedPort } from "../support/api-server.ts";
import type { Answer, TestAccount, TestApp } from "../support/test-app.ts";
import { type Scenario, scenarios, useServer } from "./scenario.ts";

/** Specification, "Webhooks"; rules, sections 1 (local mode) and 9. The inbox has a file of its own. */

const { any, stringMatching } = expect;

interface World {
  server: TestApp;
  /** Business: two webhooks. */
  ada: TestAccount;
  eve: TestAccount;
}

const ownPort = await closedPort();
const nobodysPort = await closedPort();
const server = useServer({ env: { POSTRIDER_PORT: String(ownPort) } });
let ada: TestAccount;
let eve: TestAccount;

beforeAll(async () => {
  ada = await server().account();
  await ada.setTier("business");
  eve = await server().account();
  await put(eve, [{ webhook_url: "https://eve.example.com/hook", name: "Eve" }]);
});

const world = (): World => ({ server: server(), ada, eve });

const put = (account: TestAccount, body: unknown): Promise<Answer> => account.put("/v1/tenants/webhooks", body);

const list = async (account: TestAccount): Promise<{ id: string; url: string; name: string }[]> =>
  (await account.get("/v1/tenants/webhooks")).body;

const a = { webhook_url: "https://example.com/a", name: "A" };
const b = { webhook_url: "https://example.com/b", name: "B" };
const c = { webhook_url: "https://example.com/c", name: "C" };

/** The list is saved and answered in the order sent, and the other tenant's stays. */
function saved(body: { webhook_url: string; name?: string }[], section = "spec: Webhooks"): Scenario<World> {
  return {
    section,
    request: ({ ada }) => put(ada, body),
    status: 200,
    exact: true,
    body: body.map(({ webhook_url, name = "" }) => ({ webhook_url, name })),
    never: ({ eve }) => [eve.id, "eve.example.com"],
    async then({ ada, eve }) {
      expect(await list(ada)).toEqual(
        body.map(({ webhook_url: url, name = "" }) => ({ id: stringMatching(/^wh_[0-9a-z]{26}$/), url, name })),
      );
      expect(await list(eve)).toEqual([{ id: any(String), url: "https://eve.example.com/hook", name: "Eve" }]);
    },
  };
}

/** 400 with exactly this code, a sentence that names the field, and nothing has changed. */
function refusal(body: unknown, code: string, message: RegExp, section = "rules 9"): Scenario<World> {
  let before: Awaited<ReturnType<typeof list>> = [];
  return {
    section,
    async given({ ada }) {
      before = await list(ada);
    },
    request: ({ ada }) => put(ada, body),
    status: 400,
    exact: true,
    body: { message: stringMatching(message), code },
    never: ({ eve }) => [eve.id, "eve.example.com"],
    then: async ({ ada }) => expect(await list(ada)).toEqual(before),
  };
}

scenarios<World>("GET /v1/tenants/webhooks", world, {
  "expand that is neither true nor false": {
    section: "rules 14",
    request: ({ ada }) => ada.get("/v1/tenants/webhooks?expand=yes"),
    status: 400,
  },
  "a new account has none": {
    section: "spec: Webhooks",
    request: ({ ada }) => ada.get("/v1/tenants/webhooks"),
    status: 200,
    exact: true,
    body: [],
    headers: { "Cache-Control": "no-store" },
  },
});

let ids: string[];
const onTier = (tier: string, entries: unknown[]): Scenario<World> => ({
  ...refusal(entries, "too_many_webhooks", /^The body must have at most \d entr/, "spec: Limits"),
  async given({ ada }) {
    await put(ada, []);
    await ada.setTier(tier);
  },
  async then({ ada }) {
    expect(await list(ada)).toEqual([]);
    expect((await put(ada, entries.slice(1))).status).toBe(200);
    expect(await list(ada)).toHaveLength(entries.length - 1);
    await ada.setTier("business");
  },
});

const rename = { ...a, name: "Renamed" };

scenarios<World>("PUT /v1/tenants/webhooks", world, {
  "one entry": saved([a]),
  "without a name it is empty": { ...saved([{ webhook_url: a.webhook_url }]), section: "spec: Webhook entry" },
  "two in the order sent": saved([b, a]),
  "in another order, each URL with its id": {
    ...saved([a, b], "rules 9"),
    async given({ ada }) {
      ids = (await list(ada)).map(({ id }) => id);
    },
    then: async ({ ada }) => expect((await list(ada)).map(({ id }) => id)).toEqual([ids[1] ?? "", ids[0] ?? ""]),
  },
  "another name for a URL, with the same id": {
    ...saved([rename, b], "rules 9"),
    then: async ({ ada }) => expect((await list(ada)).map(({ id }) => id)).toEqual([ids[1] ?? "", ids[0] ?? ""]),
  },
  "a URL left out is removed": saved([b]),
  "registered again it is a new one": {
    ...saved([a, b]),
    then: async ({ ada }) => {
      const [first, second] = (await list(ada)).map(({ id }) => id);
      expect([first === ids[1], second === ids[0]]).toEqual([false, true]);
    },
  },
  "an empty array removes all": saved([]),
  "saved as given": saved(
    [{ webhook_url: "HTTPS://EXAMPLE.com:443/a/../b?x=%7e&y= z".replace(" ", "+"), name: " x " }],
    "rules 9",
  ),
  "2,048 characters": saved([{ webhook_url: `https://example.com/${"x".repeat(2028)}` }], "rules 9"),
  "a name of 200 characters": saved([{ ...a, name: "n".repeat(200) }], "rules 9"),
  "a name of other letters": saved([{ ...a, name: "Ñandú 🦤 <b>" }], "rules 9"),
  "unknown fields are ignored": {
    ...saved([a]),
    request: ({ ada }) => put(ada, [{ ...a, id: "wh_mine", url: "https://other.example.com" }]),
  },
  "two on free": onTier("free", [a, b]),
  "two on pro": onTier("pro", [a, b]),
  "three on business": onTier("business", [a, b, c]),
  "four on enterprise": onTier("enterprise", [a, b, c, { webhook_url: "https://example.com/d" }]),
});

const notPublic = "must have a public address, not a private, local or reserved one.";
const badUrls: Record<string, [url: string, rule: string]> = {
  "http and a public name": ["http://example.com/hook", "must start with"],
  "http and a public address": ["http://93.184.215.14/hook", "must start with"],
  "another scheme": ["ftp://example.com/hook", "must start with"],
  "no scheme": ["example.com/hook", "must start with"],
  "a relative URL": ["/hook", "must start with"],
  nothing: ["", "must start with"],
  "no host": ["https://", "must be a valid URL"],
  "a user": ["https://ada@example.com/hook", "must not contain a user name or password."],
  "a user and a password": ["https://ada:secret@example.com/hook", "must not contain a user name or password."],
  "a fragment": ["https://example.com/hook#part", "must not contain a fragment"],
  "an empty fragment": ["https://example.com/hook#", "must not contain a fragment"],
  "a space": ["https://example.com/a b", "must not contain spaces"],
  "a line break": ["https://example.com/\nhook", "must not contain spaces or control characters"],
  "a backslash": ["https://example.com\\@10.0.0.1/", "must not contain a backslash"],
  "a private address": ["https://10.0.0.1/hook", notPublic],
  "another private address": ["https://192.168.1.1/hook", notPublic],
  "a private address in hexadecimal": ["https://0x0a000001/hook", notPublic],
  "a private address as IPv6": ["https://[::ffff:10.0.0.1]/hook", notPublic],
  "a unique local address": ["https://[fd12::1]/hook", notPublic],
  "the metadata service": ["https://169.254.169.254/latest", notPublic],
  "every interface": ["https://0.0.0.0/hook", notPublic],
  "a name of one label": ["https://intranet/hook", "must have a full public host name"],
  "an internal name": ["https://db.internal/hook", "must have a public host name"],
  "a loopback name that is not localhost": ["https://a.localhost/hook", "must have a public host name"],
  "a port of another protocol": ["https://example.com:25/hook", "must not use a port reserved for another protocol"],
  "2,049 characters": [`https://example.com/${"x".repeat(2029)}`, "must be at most 2,048 characters long."],
  "this server": [`http://127.0.0.1:${ownPort}/v1/ingest`, "must not be an address of this server itself."],
  "this server by name": [`http://localhost:${ownPort}/`, "must not be an address of this server itself."],
  "this server by name, over https": [`https://localhost:${ownPort}/`, "must not be an address of this server itself."],
  "this server over IPv6": [`http://[::1]:${ownPort}/`, "must not be an address of this server itself."],
  "this server by another loopback address": [`http://127.0.0.2:${ownPort}/`, "must not be an address of this server"],
};

const asPattern = (text: string) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");

scenarios<World>("PUT /v1/tenants/webhooks", world, {
  ...Object.fromEntries(
    Object.entries(badUrls).map(([name, [webhook_url, rule]]) => [
      `a URL with ${name}`,
      refusal([a, { webhook_url }], "invalid_webhook_url", new RegExp(`^\\[1\\]\\.webhook_url ${asPattern(rule)}`)),
    ]),
  ),
  ...Object.fromEntries(
    ["localhost", "127.0.0.1", "127.0.0.2", "[::1]"].flatMap((host) =>
      ["http", "https"].map((scheme) => [
        `${scheme}://${host} in local mode`,
        saved([{ webhook_url: `${scheme}://${host}:${nobodysPort}/hook` }], "rules 1"),
      ]),
    ),
  ),
  "more than the plan allows, before any of them is judged": refusal(
    Array.from({ length: 1_000 }, () => ({ webhook_url: "no URL" })),
    "too_many_webhooks",
    /^The body must have at most \d entr/,
  ),
  "the same URL twice": refusal([a, a], "duplicate_webhook", /^\[1\]\.webhook_url must not be the same/),
  "the same URL under two names": refusal([a, { ...a, name: "Z" }], "duplicate_webhook", /^\[1\]\.webhook_url/),
  "the same URL in two spellings": refusal(
    [a, { webhook_url: "HTTPS://EXAMPLE.com:443/x/../a" }],
    "duplicate_webhook",
    /^\[1\]\.webhook_url must not be the same/,
  ),
  "a name of 201 characters": refusal(
    [{ ...a, name: "n".repeat(201) }],
    "invalid_request",
    /^\[0\]\.name must have at/,
  ),
  "a name that is a number": refusal([{ ...a, name: 7 }], "invalid_request", /^\[0\]\.name must be a string/),
  "a name that is null": refusal([{ ...a, name: null }], "invalid_request", /^\[0\]\.name must be a string/),
  "no URL": refusal([{ name: "A" }], "field_required", /^\[0\]\.webhook_url is required\.$/),
  "the field name of the list": refusal([{ url: a.webhook_url }], "field_required", /^\[0\]\.webhook_url is required/),
  "a URL that is a number": refusal([{ webhook_url: 7 }], "invalid_request", /^\[0\]\.webhook_url must be a string/),
  "a URL that is null": refusal([{ webhook_url: null }], "invalid_request", /^\[0\]\.webhook_url must be a string/),
  "an entry that is a text": refusal([a.webhook_url], "invalid_request", /^\[0\] must be a JSON object/),
  "an entry that is a list": refusal([[a]], "invalid_request", /^\[0\] must be a JSON object/),
  "an entry that is null": refusal([a, null], "invalid_request", /^\[1\] must be a JSON object/),
  "an object": refusal(a, "invalid_request", /^The body must be an array/),
  "an object around the list": refusal({ webhooks: [a] }, "invalid_request", /^The body must be an array/),
  "a text": refusal('"https://example.com/hook"', "invalid_request", /^The body must be an array/),
  null: refusal("null", "invalid_request", /^The body must be an array/),
});

const orders = { ...a, event_types: ["order.*", "refund"] };
const settings = async ({ ada }: World) => (await ada.get("/v1/tenants/webhooks?expand=true")).body;
const patterns = async (current: World) =>
  (await settings(current)).map(({ event_types }: { event_types: unknown }) => event_types);
const well = { failing_since: null, disabled_at: null, disabled_reason: null };
const usual = { ordered: false, paused: false, rate_limit: null, max_concurrency: null, headers: null, ...well };
const withTypes = (event_types: unknown) => [{ ...b, event_types }];
const rules14 = "rules 14";

scenarios<World>("PUT /v1/tenants/webhooks", world, {
  "patterns of event types, which the answer leaves out": {
    ...saved([a, b], rules14),
    request: ({ ada }) => put(ada, [orders, b]),
    then: async (current) =>
      expect(await settings(current)).toEqual([
        {
          id: any(String),
          url: a.webhook_url,
          name: "A",
          state: "active",
          event_types: orders.event_types,
          ...usual,
        },
        { id: any(String), url: b.webhook_url, name: "B", state: "active", event_types: null, ...usual },
      ]),
  },
  "patterns that are not named stay with their URL": {
    ...saved([b, a], rules14),
    then: async (current) => expect(await patterns(current)).toEqual([null, orders.event_types]),
  },
  "null takes every event again": {
    ...saved([a], rules14),
    request: ({ ada }) => put(ada, [{ ...a, event_types: null }]),
    then: async (current) => expect(await patterns(current)).toEqual([null]),
  },
  "a pause, of which expand=true tells": {
    ...saved([a, b], rules14),
    request: ({ ada }) => put(ada, [{ ...a, paused: true }, b]),
    then: async (current) =>
      expect(await settings(current)).toMatchObject([
        { state: "paused", paused: true },
        { state: "active", paused: false },
      ]),
  },
  "a pause that is not named stays with its URL": {
    ...saved([b, a], rules14),
    then: async (current) => expect(await settings(current)).toMatchObject([{ paused: false }, { paused: true }]),
  },
  "null ends it": {
    ...saved([a], rules14),
    request: ({ ada }) => put(ada, [{ ...a, paused: null }]),
    then: async (current) => expect(await settings(current)).toMatchObject([{ state: "active", paused: false }]),
  },
  "an order, of which expand=true tells, and which stays with its URL": {
    ...saved([a], rules14),
    given: ({ ada }) => put(ada, [{ ...a, ordered: true }]),
    then: async (current) => expect(await settings(current)).toMatchObject([{ ordered: true }]),
  },
  "null ends that": {
    ...saved([a], rules14),
    request: ({ ada }) => put(ada, [{ ...a, ordered: null }]),
    then: async (current) => expect(await settings(current)).toMatchObject([{ ordered: false }]),
  },
  "an order that is no boolean": refusal(
    [{ ...b, ordered: "yes" }],
    "invalid_request",
    /^\[0\]\.ordered must be/,
    rules14,
  ),
  "limits, which stay with their URL": {
    ...saved([a], rules14),
    given: ({ ada }) => put(ada, [{ ...a, rate_limit: 1000, max_concurrency: 16 }]),
    then: async (current) => expect(await settings(current)).toMatchObject([{ rate_limit: 1000, max_concurrency: 16 }]),
  },
  "null lifts them": {
    ...saved([a], rules14),
    request: ({ ada }) => put(ada, [{ ...a, rate_limit: null, max_concurrency: null }]),
    then: async (current) => expect(await settings(current)).toMatchObject([usual]),
  },
  ...Object.fromEntries(
    ([0, 1001, 1.5, "5", true] as const).map((value) => [
      `a rate of ${JSON.stringify(value)}`,
      refusal([{ ...b, rate_limit: value }], "invalid_request", /^\[0\]\.rate_limit must be/, rules14),
    ]),
  ),
  ...Object.fromEntries(
    ([0, 17, 1.5, "5"] as const).map((value) => [
      `${JSON.stringify(value)} at once`,
      refusal([{ ...b, max_concurrency: value }], "invalid_request", /^\[0\]\.max_concurrency must be/, rules14),
    ]),
  ),
  "a pause that is no boolean": refusal([{ ...b, paused: 1 }], "invalid_request", /^\[0\]\.paused must be/, rules14),
  "no patterns at all": refusal(withTypes([]), "event_types_empty", /^\[0\]\.event_types must not be empty/, rules14),
  "51 patterns": refusal(withTypes(Array(51).fill("a")), "too_many_event_types", /at most 50/, rules14),
  "a pattern that is no string": refusal(
    withTypes([7]),
    "invalid_request",
    /^\[0\]\.event_types\[0\] must be/,
    rules14,
  ),
  "patterns that are no array": refusal(
    withTypes("order.*"),
    "invalid_request",
    /^\[0\]\.event_types must be/,
    rules14,
  ),
  ...Object.fromEntries(
    ["", "*", "order.", ".order", "order*", "order.*.paid", "a b", "café", `${"x".repeat(201)}`].map((pattern) => [
      `the pattern ${JSON.stringify(pattern.slice(0, 20))}`,
      refusal(withTypes(["ok", pattern]), "invalid_event_type", /^\[0\]\.event_types\[1\] must be words/, rules14),
    ]),
  ),
  "two of one URL are refused before their patterns": refusal([b, b], "duplicate_webhook", /same URL/),
});
