// biome-ignore-all lint/suspicious/noThenProperty: rows of a scenario table have one
import { beforeAll, describe, expect, test } from "bun:test";
import { Webhook } from "standardwebhooks";
import nacl from "tweetnacl";
import { endpoint } from "../../src/http/endpoint.ts";
import { ingestOne, isoPattern, outcome, register, until } from "../support/api-server.ts";
import { serveEndpoints } from "../support/serve-endpoints.ts";
import type { Answer, TestAccount, TestApp } from "../support/test-app.ts";
import { provenSections, type Scenario, scenarios, useServer } from "./scenario.ts";

/** Rules, section 9: the inbox of every account. How it answers is in `inbox-answers.test.ts`. */

provenSections.add("rules 9");

const { any, stringMatching } = expect;

interface World {
  server: TestApp;
  /** Business: two webhooks. */
  ada: TestAccount;
  eve: TestAccount;
}

const server = useServer();
let ada: TestAccount;
let eve: TestAccount;
let adasInbox: string;
let evesInbox: string;

const inboxOf = async (account: TestAccount, query = "") => (await account.get(`/v1/inbox${query}`)).body;
const world = (): World => ({ server: server(), ada, eve });

beforeAll(async () => {
  [ada, eve] = await Promise.all([server().account(), server().account()]);
  await ada.setTier("business");
  [adasInbox, evesInbox] = [(await inboxOf(ada)).url, (await inboxOf(eve)).url];
});

const standard = { status: 204, delay_ms: 0, silent: false };

// ---------------------------------------------------------------- reading and telling

const refusedQuery = (query: string, message: RegExp): Scenario<World> => ({
  section: "rules 9",
  request: ({ ada }) => ada.get(`/v1/inbox${query}`),
  status: 400,
  exact: true,
  body: { message: stringMatching(message), code: "invalid_request" },
});

scenarios<World>("GET /v1/inbox", world, {
  "every account has one, empty, with an address of its own": {
    section: "rules 9",
    request: ({ ada }) => ada.get("/v1/inbox"),
    status: 200,
    exact: true,
    body: ({ server }: World) => ({
      url: stringMatching(new RegExp(`^http://localhost:${new URL(server.url).port}/inbox/[0-9a-hjkmnp-tv-z]{26}$`)),
      answer: standard,
      deliveries: [],
      total: 0,
    }),
    headers: { "Cache-Control": "no-store" },
    never: ({ eve }) => [eve.id, evesInbox],
    async then({ ada }, { body }) {
      expect(body.url).not.toBe(evesInbox);
      expect((await inboxOf(ada)).url).toBe(body.url);
    },
  },
  "a size of none": refusedQuery("?size=0", /^size must be at least 1\.$/),
  "a size of 101": refusedQuery("?size=101", /^size must be at most 100\.$/),
  "a size that is no number": refusedQuery("?size=all", /^size must be a whole number\.$/),
});

/** Told this, it answers that from then on; nobody else's does. */
const told = (body: unknown, answer: typeof standard): Scenario<World> => ({
  section: "rules 9",
  request: ({ ada }) => ada.put("/v1/inbox/answer", body),
  status: 200,
  exact: true,
  body: answer,
  async then({ ada, eve }) {
    expect([(await inboxOf(ada)).answer, (await inboxOf(eve)).answer]).toEqual([answer, standard]);
  },
});

const notTold = (body: unknown, message: RegExp): Scenario<World> => ({
  section: "rules 9",
  request: ({ ada }) => ada.put("/v1/inbox/answer", body),
  status: 400,
  exact: true,
  body: { message: stringMatching(message), code: "invalid_request" },
  then: async ({ ada }) => expect((await inboxOf(ada)).answer).toEqual({ status: 503, delay_ms: 15_000, silent: true }),
});

scenarios<World>("PUT /v1/inbox/answer", world, {
  "another status": told({ status: 599 }, { ...standard, status: 599 }),
  "a delay, the rest by default": told({ delay_ms: 1 }, { ...standard, delay_ms: 1 }),
  silence: told({ silent: true }, { ...standard, silent: true }),
  "nothing, so that it is as at first": told({}, standard),
  "fields that it does not know": told({ status: 200, retry_after: 1 }, { ...standard, status: 200 }),
  everything: told({ status: 503, delay_ms: 15_000, silent: true }, { status: 503, delay_ms: 15_000, silent: true }),
  "a status below 200": notTold({ status: 199 }, /^status must be at least 200\.$/),
  "a status above 599": notTold({ status: 600 }, /^status must be at most 599\.$/),
  "a broken status": notTold({ status: 204.5 }, /^status must be a whole number\.$/),
  "a status that is a text": notTold({ status: "204" }, /^status must be a number\.$/),
  "a status that is null": notTold({ status: null }, /^status must be a number\.$/),
  "a delay below 0": notTold({ delay_ms: -1 }, /^delay_ms must be at least 0\.$/),
  "a delay beyond 15 s": notTold({ delay_ms: 15_001 }, /^delay_ms must be at most 15000\.$/),
  "silence that is a text": notTold({ silent: "yes" }, /^silent must be true or false\.$/),
  "a list": notTold([], /^The body must be a JSON object\.$/),
});

// ---------------------------------------------------------------- as a webhook

const put = (account: TestAccount, ...urls: string[]): Promise<Answer> =>
  account.put(
    "/v1/tenants/webhooks",
    urls.map((webhook_url) => ({ webhook_url })),
  );

const refusedUrl = (urls: () => string[], code: string, message: RegExp): Scenario<World> => ({
  section: "rules 9",
  request: ({ ada }) => put(ada, ...urls()),
  status: 400,
  exact: true,
  body: { message: stringMatching(message), code },
  then: async ({ ada }) => expect((await ada.get("/v1/tenants/webhooks")).body).toHaveLength(1),
});

const ownListener = /^\[0\]\.webhook_url must not be an address of this server itself\.$/;
const almost: Record<string, [change: (url: string) => string, code?: string, message?: RegExp]> = {
  "another account's inbox": [() => evesInbox],
  "a slash at the end": [(url) => `${url}/`],
  "a query": [(url) => `${url}?x=1`],
  "an empty query": [(url) => `${url}?`],
  "the token in capitals": [(url) => url.replace(/[^/]+$/, (token) => token.toUpperCase())],
  "the host in capitals": [(url) => url.replace("localhost", "LOCALHOST")],
  "another name of the host": [(url) => url.replace("localhost", "127.0.0.1")],
  "another scheme": [(url) => url.replace("http:", "https:")],
  "a token that is cut": [(url) => url.slice(0, -1)],
  "no token": [(url) => url.replace(/[^/]+$/, "")],
  "a dot in the path": [(url) => url.replace("/inbox/", "/./inbox/")],
  "an escape in the path": [(url) => url.replace("/inbox/", "/%69nbox/")],
  "a fragment": [(url) => `${url}#`, "invalid_webhook_url", /must not contain a fragment/],
  "a user": [(url) => url.replace("//", "//ada@"), "invalid_webhook_url", /must not contain a user name/],
};

scenarios<World>("PUT /v1/tenants/webhooks", world, {
  "the own inbox, exactly": {
    section: "rules 9",
    request: ({ ada }) => put(ada, adasInbox),
    status: 200,
    exact: true,
    body: () => [{ webhook_url: adasInbox, name: "" }],
    then: async ({ ada }) =>
      expect((await ada.get("/v1/tenants/webhooks")).body).toEqual([{ id: any(String), url: adasInbox, name: "" }]),
  },
  ...Object.fromEntries(
    Object.entries(almost).map(([name, [change, code = "invalid_webhook_url", message = ownListener]]) => [
      `${name} is not the own inbox`,
      refusedUrl(() => [change(adasInbox)], code, message),
    ]),
  ),
  "the own inbox twice": refusedUrl(
    () => [adasInbox, adasInbox],
    "duplicate_webhook",
    /^\[1\]\.webhook_url must not be/,
  ),
  "the own inbox beyond the plan's limit": refusedUrl(
    () => ["https://example.com/a", "https://example.com/b", adasInbox],
    "too_many_webhooks",
    /^The body must have at most 2 entries/,
  ),
});

scenarios<World>("POST /v1/tenants", world, {
  "somebody's inbox, while the own one does not exist yet": {
    section: "rules 9",
    request: ({ server }) =>
      server.request("POST", "/v1/tenants", { body: { webhooks: [{ webhook_url: evesInbox }] } }),
    status: 400,
    exact: true,
    body: {
      message: stringMatching(/^webhooks\[0\]\.webhook_url must not be an address/),
      code: "invalid_webhook_url",
    },
  },
});

// ---------------------------------------------------------------- deliveries

/** A new account whose only webhook is its inbox. */
async function withInbox(app = server()): Promise<TestAccount> {
  const account = await app.account();
  await register(account, (await inboxOf(account)).url);
  return account;
}

describe("a delivery to the own inbox", () => {
  test("is acknowledged, and shown byte for byte with headers that prove it", async () => {
    const account = await withInbox();
    const payload = '{ "a" : 1.0, "a":12345678901234567890, "é":"\\ud83d\\u20ac😀", "__proto__":null }';
    const sent = await server().request("POST", "/v1/ingest", {
      token: account.apiKey,
      body: `{"payload":${payload}}`,
    });
    const { eventId } = sent.body;
    const record = await outcome(account, eventId);
    const { url, deliveries, total } = await inboxOf(account);
    expect(record).toMatchObject({ state: "DELIVERED", targetWebhook: url, errorReason: null, attempts: 1 });
    expect(total).toBe(1);
    const [{ headers, body, ...rest }] = deliveries;
    expect(rest).toEqual({
      id: stringMatching(/^ibx_[0-9a-z]{26}$/),
      receivedAt: stringMatching(isoPattern),
      eventId,
      answeredStatus: 204,
      isTest: false,
    });
    expect(body).toBe(
      `{"eventId":"${eventId}","tenantId":"${account.id}","ingestionTimestamp":"${record.ingestionTimestamp}","payload":${payload}}`,
    );
    expect(headers).toMatchObject({
      Host: new URL(url).host,
      "Content-Type": "application/json",
      "Service-Event-Id": eventId,
      "Content-Length": String(Buffer.byteLength(body)),
    });
    const { keys } = (await server().request("GET", `/v1/tenants/${account.id}/jwks.json`)).body;
    expect(headers["Service-Key-Id"]).toBe(keys[0].kid);
    const signature = Buffer.from(headers["Service-Signature"], "base64");
    const publicKey = Buffer.from(keys[0].x, "base64url");
    expect(nacl.sign.detached.verify(Buffer.from(body), signature, publicKey)).toBe(true);
    const { secret } = (await account.get("/v1/tenants/signing-secret")).body;
    expect(new Webhook(secret).verify(body, headers)).toMatchObject({ eventId, tenantId: account.id });
  });

  test("is shown to nobody else", async () => {
    const [account, other] = [await withInbox(), await withInbox()];
    const eventId = await ingestOne(account, { secret: "ada's payload" });
    await outcome(account, eventId);
    const { text } = await other.get("/v1/inbox");
    for (const leak of [account.id, eventId, "ada's payload", (await inboxOf(account)).url]) {
      expect(text).not.toContain(leak);
    }
    expect((await other.delete("/v1/inbox/deliveries")).status).toBe(204);
    expect((await inboxOf(account)).total).toBe(1);
  });

  test("a test of the webhook is one, too, and a replay names its label", async () => {
    const account = await withInbox();
    const [{ id }] = (await account.get("/v1/tenants/webhooks")).body;
    const { body: attempt } = await account.post(`/v1/tenants/webhooks/${id}/test`);
    expect(attempt).toMatchObject({ statusCode: 204, error: null, responseBody: "" });
    const eventId = await ingestOne(account);
    await outcome(account, eventId);
    await account.post("/v1/events/replays/single", { eventId, replayGroupId: "once more" });
    const { deliveries } = await until(
      () => inboxOf(account),
      ({ total }) => total === 3,
    );
    expect(
      deliveries.map(({ isTest, headers }: { isTest: boolean; headers: Record<string, string> }) => [
        isTest,
        headers["Service-Replay-Group"],
      ]),
    ).toEqual([
      [false, "once%20more"],
      [false, undefined],
      [true, undefined],
    ]);
  });

  test("the last 100 are kept, the newest first, in pages", async () => {
    const account = await withInbox();
    const sent: string[] = [];
    for (let i = 0; i < 105; i++) {
      const eventId = await ingestOne(account, { i });
      await outcome(account, eventId);
      sent.unshift(eventId);
    }
    const idsOf = ({ deliveries }: { deliveries: { id: string }[] }) => deliveries.map(({ id }) => id);
    const all = await inboxOf(account, "?size=100");
    expect(all.total).toBe(100);
    expect(all.deliveries.map(({ eventId }: { eventId: string }) => eventId)).toEqual(sent.slice(0, 100));
    const first = await inboxOf(account);
    const second = await inboxOf(account, `?before=${idsOf(first).at(-1)}`);
    expect([...idsOf(first), ...idsOf(second)]).toEqual(idsOf(all).slice(0, 40));
    expect(idsOf(await inboxOf(account, `?after=${idsOf(all)[3]}`))).toEqual(idsOf(all).slice(0, 3));
    expect(idsOf(await inboxOf(account, `?after=${idsOf(all)[0]}`))).toEqual([]);
    expect((await account.delete("/v1/inbox/deliveries")).status).toBe(204);
    expect(await inboxOf(account)).toMatchObject({ deliveries: [], total: 0, answer: standard });
    expect((await account.get("/v1/events")).body.total).toBe(105);
  });
});

// ---------------------------------------------------------------- closed to the outside

describe("from outside", () => {
  const methods = ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

  test.each(methods)("%s is 404, for every token alike", async (method) => {
    const account = await withInbox();
    await outcome(account, await ingestOne(account));
    const { url, deliveries } = await inboxOf(account);
    const { headers, body } = deliveries[0];
    const { Host: _, "Content-Length": __, ...signed } = headers;
    const paths = [new URL(url).pathname, `/inbox/${"0".repeat(26)}`, "/inbox/", "/inbox/x/y"];
    const answers = await Promise.all(paths.map((path) => server().request(method, path, { headers: signed, body })));
    for (const answer of answers) {
      expect([answer.status, answer.body.code]).toEqual([404, "unknown_path"]);
      expect(answer.text).toBe(answers[0]?.text ?? "");
      const names = [...answer.headers.keys()].filter((name) => name !== "date");
      expect(names.toSorted()).toEqual(["cache-control", "content-length", "content-type", "x-content-type-options"]);
    }
    expect((await inboxOf(account)).total).toBe(1);
  });

  test("also where GET is a page", async () => {
    const page = endpoint(
      { method: "GET", path: "/inbox/:token", tag: "Pages", summary: "The page", access: "none", responses: {} },
      () => ({ status: 200, text: "page" }),
    );
    const served = serveEndpoints([page]);
    expect((await fetch(`${served.url}/inbox/x`)).status).toBe(200);
    for (const method of methods) {
      const answer = await fetch(`${served.url}/inbox/x`, { method });
      expect([method, answer.status, answer.headers.get("allow")]).toEqual([method, 404, null]);
    }
    await served.stop();
  });
});
