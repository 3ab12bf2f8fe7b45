// biome-ignore-all lint/suspicious/noThenProperty: rows of a scenario table have one
import { afterAll, beforeAll, expect } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gate, type Hook, type Hooks, ingestOne, outcome, startHooks } from "../support/api-server.ts";
import type { Answer, TestAccount, TestApp } from "../support/test-app.ts";
import { type Scenario, scenarios, useServer } from "./scenario.ts";

/** Rules, section 14: headers of the tenant's own on each delivery. */

const section = "rules 14";
const secret = "Bearer of-the-shop-1234";
const second = "another-secret-5678";
/** Its mask is that of `secret`. */
const newSecret = "Bearer anew-of-the-shop-1234";
let bothTags = "";
let readings = 0;

interface World {
  server: TestApp;
  ada: TestAccount;
}

/** Happens once, between the next reading of an account's webhooks and what follows it. */
let afterReading: (() => Promise<unknown>) | null = null;
const server = useServer({
  wrapStore: (store) => ({
    ...store,
    async webhooks(tenantKey) {
      const webhooks = await store.webhooks(tenantKey);
      const happen = afterReading;
      afterReading = null;
      await happen?.();
      return webhooks;
    },
  }),
});
let ada: TestAccount;
let hooks: Hooks;
let hook: Hook;

beforeAll(async () => {
  hooks = await startHooks();
  hook = hooks.hook(200);
  ada = await server().account();
  await ada.setTier("business");
});
afterAll(() => hooks.stop());

const world = (): World => ({ server: server(), ada });

const put = (headers: unknown): Promise<Answer> =>
  ada.put("/v1/tenants/webhooks", [{ webhook_url: hook.url, ...(headers !== undefined && { headers }) }]);

const shown = async (): Promise<unknown> => (await ada.get("/v1/tenants/webhooks?expand=true")).body[0].headers;

/** What a delivery carries beside ours. */
async function carried() {
  await outcome(ada, await ingestOne(ada));
  const { authorization, "x-shop": shop } = hook.received.at(-1)?.headers ?? {};
  return [authorization, shop];
}

const saved = (headers: unknown, then: () => Promise<void>): Scenario<World> => ({
  section,
  request: () => put(headers),
  status: 200,
  exact: true,
  body: () => [{ webhook_url: hook.url, name: "" }],
  then,
});

const refusal = (headers: unknown, code: string, message: RegExp): Scenario<World> => ({
  section,
  request: () => put(headers),
  status: 400,
  exact: true,
  body: { message: expect.stringMatching(message), code },
  never: () => [secret, second],
  then: async () => expect(await shown()).toEqual({ Authorization: "••••1234", "X-Shop": "••••" }),
});

/** Masks are sent for the headers as they were, and `act` comes between what the server reads and what it saves. */
const overtaken = (
  headers: unknown,
  act: () => Promise<unknown>,
): Pick<Scenario<World>, "section" | "given" | "request"> => ({
  section,
  async given() {
    await put({ Authorization: secret });
    afterReading = act;
  },
  request: () => put(headers),
});

scenarios<World>("PUT /v1/tenants/webhooks", world, {
  "headers, which deliveries carry and answers mask": saved({ Authorization: secret, "X-Shop": "7" }, async () => {
    expect(await shown()).toEqual({ Authorization: "••••1234", "X-Shop": "••••" });
    expect(await carried()).toEqual([secret, "7"]);
  }),
  "headers that are not named stay": saved(undefined, async () => expect(await carried()).toEqual([secret, "7"])),
  "masks that are sent back stand for their values": saved({ "X-Shop": "••••", authorization: "••••1234" }, async () =>
    expect(await carried()).toEqual([secret, "7"]),
  ),
  "a mask beside another value": saved({ Authorization: "••••1234", "X-Shop": "8" }, async () => {
    expect(await carried()).toEqual([secret, "8"]);
    expect((await put({ Authorization: secret, "X-Shop": "7" })).status).toBe(200);
  }),
  "a mask of another value": refusal({ Authorization: "••••9999" }, "invalid_header", /masked value of Authorization/),
  "a mask beside a value with which it would be too much": refusal(
    { Authorization: "••••1234", "X-Shop": "7".repeat(4_060) },
    "invalid_header",
    /^\[0\]\.headers must have at most 4096 characters/,
  ),
  "a name of ours": refusal(
    { "Webhook-Id": "x" },
    "reserved_header",
    /^\[0\]\.headers has the name "Webhook-Id", which/,
  ),
  "a line break": refusal(
    { "X-A": `${second}\r\nX-B: 1` },
    "invalid_header",
    /^\[0\]\.headers has a value of X-A that/,
  ),
  "a list": refusal([["A", "b"]], "invalid_request", /^\[0\]\.headers must be an object of names and values, or null/),
  "a value that is no string": refusal({ "X-A": 1 }, "invalid_request", /^\[0\]\.headers\.X-A must be a string/),
  "a name that models leave out": refusal(
    JSON.parse('{"__proto__":"x"}'),
    "invalid_request",
    /^\[0\]\.headers must not have the names __proto__, constructor, prototype/,
  ),
  "21 of them": refusal(
    Object.fromEntries(Array.from({ length: 21 }, (_, n) => [`X-${n}`, "v"])),
    "invalid_header",
    /at most 20 headers/,
  ),
  "other headers, which hold for what waits, too": {
    ...saved({ Authorization: second }, async () => {
      hook.answer = 200;
    }),
    async given() {
      const held = gate();
      hook.answer = held.answer;
      const before = hook.received.length;
      await ingestOne(ada);
      for (let n = 0; n < 40; n += 1) await ingestOne(ada);
      await hook.whenReceived(before + 16);
      const inFlight = hook.received.length - before;
      await put({ Authorization: second });
      held.open();
      await server().app.whenIdle();
      const carriedBy = hook.received.slice(before).map(({ headers }) => headers.authorization);
      expect(carriedBy).toEqual([...Array(inFlight).fill(secret), ...Array(41 - inFlight).fill(second)]);
    },
  },
  "a test carries them": {
    ...saved(undefined, async () => {
      const [{ id }] = (await ada.get("/v1/tenants/webhooks")).body;
      expect((await ada.post(`/v1/tenants/webhooks/${id}/test`)).body.statusCode).toBe(200);
      expect(hook.received.at(-1)?.headers.authorization).toBe(second);
    }),
  },
  "their values stand in no log, no answer and no file": saved(undefined, async () => {
    const answers = await Promise.all(
      ["/v1/tenants/webhooks?expand=true", "/v1/tenants/webhooks", "/v1/events", "/v1/tenants/webhooks/health"].map(
        async (path) => (await ada.get(path)).text,
      ),
    );
    const { dataDir, log } = server();
    const files = readdirSync(dataDir, { recursive: true, withFileTypes: true })
      .filter((file) => file.isFile())
      .map((file) => readFileSync(join(file.parentPath, file.name), "latin1"));
    const all = [...answers, ...log, ...files].join("\n");
    expect([all.includes("of-the-shop"), all.includes("another-secret")]).toEqual([false, false]);
  }),
  "null takes them away": saved(null, async () => {
    expect(await shown()).toBeNull();
    expect(await carried()).toEqual([undefined, undefined]);
  }),
  "a mask whose webhook somebody else removes in that moment": {
    ...overtaken({ Authorization: "••••1234" }, () => ada.put("/v1/tenants/webhooks", [])),
    status: 400,
    body: { code: "invalid_header", message: expect.stringMatching(/masked value of Authorization/) },
    then: async () => expect((await ada.get("/v1/tenants/webhooks")).body).toEqual([]),
  },
  "a mask whose value somebody else replaces in that moment": {
    ...overtaken({ Authorization: "••••1234", "X-Shop": "9" }, () => put({ Authorization: second })),
    status: 400,
    body: { code: "invalid_header", message: expect.stringMatching(/masked value of Authorization/) },
    then: async () => expect(await carried()).toEqual([second, undefined]),
  },
  "a mask whose value is the same after somebody else's change in that moment": {
    ...overtaken({ Authorization: "••••1234", "X-Shop": "9" }, () => put({ Authorization: secret, "X-Shop": "8" })),
    status: 200,
    then: async () => expect(await carried()).toEqual([secret, "9"]),
  },
  "a mask of another value with the same end": {
    ...overtaken({ Authorization: "••••1234", "X-Shop": "9" }, () => put({ Authorization: newSecret })),
    status: 200,
    then: async () => expect(await carried()).toEqual([newSecret, "9"]),
  },
  "a mask whose webhook somebody else removes in that moment, and If-Match would do without it": {
    section,
    async given() {
      const empty = await ada.put("/v1/tenants/webhooks", []);
      const full = await put({ Authorization: secret });
      bothTags = `${full.headers.get("etag")}, ${empty.headers.get("etag")}`;
      afterReading = () => ada.put("/v1/tenants/webhooks", []);
    },
    request: () =>
      ada.put("/v1/tenants/webhooks", [{ webhook_url: hook.url, headers: { Authorization: "••••1234" } }], {
        "If-Match": bothTags,
      }),
    status: 412,
    body: { code: "webhooks_changed" },
    then: async () => expect((await ada.get("/v1/tenants/webhooks")).body).toEqual([]),
  },
  "a mask, while somebody else changes the list after every reading": {
    ...overtaken({ Authorization: "••••1234", "X-Shop": "9" }, async function change() {
      readings += 1;
      await put({ Authorization: secret });
      afterReading = change;
    }),
    status: 412,
    body: { code: "webhooks_changed" },
    async then() {
      afterReading = null;
      expect(readings).toBe(5);
      expect(await carried()).toEqual([secret, undefined]);
    },
  },
  "no headers are none": saved({}, async () => expect(await shown()).toBeNull()),
  "of an inbox, which shows them masked": {
    section,
    async request() {
      const { url } = (await ada.get("/v1/inbox")).body;
      return ada.put("/v1/tenants/webhooks", [{ webhook_url: url, headers: { Authorization: secret } }]);
    },
    status: 200,
    async then() {
      await outcome(ada, await ingestOne(ada));
      const { text } = await ada.get("/v1/inbox");
      expect([text.includes("••••1234"), text.includes("of-the-shop")]).toEqual([true, false]);
    },
  },
});

scenarios<World>("POST /v1/tenants", world, {
  "an account that is made with them": {
    section,
    request: ({ server: app }) =>
      app.request("POST", "/v1/tenants", {
        body: { tier: "free", webhooks: [{ webhook_url: hook.url, headers: { "X-Shop": "made" } }] },
      }),
    status: 201,
    async then({ server: app }, { body }) {
      const made = await app.signIn(body.tenant_id, body.password);
      await outcome(made, await ingestOne(made));
      expect(hook.received.at(-1)?.headers["x-shop"]).toBe("made");
    },
  },
  "a mask, of which there is no value": {
    section,
    request: ({ server: app }) =>
      app.request("POST", "/v1/tenants", {
        body: { tier: "free", webhooks: [{ webhook_url: hook.url, headers: { "X-Shop": "••••" } }] },
      }),
    status: 400,
    body: { code: "invalid_header", message: expect.stringMatching(/^webhooks\[0\]\.headers has a masked value/) },
  },
});
