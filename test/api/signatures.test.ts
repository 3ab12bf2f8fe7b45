// biome-ignore-all lint/suspicious/noThenProperty: rows of a scenario table have one
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createHmac } from "node:crypto";
import { Webhook } from "standardwebhooks";
import nacl from "tweetnacl";
import { createTravelClock, type Hook, type Hooks, ingestOne, register, startHooks } from "../support/api-server.ts";
import type { TestAccount, TestApp } from "../support/test-app.ts";
import { provenSections, scenarios, useServer } from "./scenario.ts";

provenSections.add("rules 8").add("spec: Authentication");

interface Jwk {
  kid: string;
  x: string;
}

let hooks: Hooks;
beforeAll(async () => {
  hooks = await startHooks();
});
afterAll(() => hooks.stop());

const server = useServer();
let world: { server: TestApp; tenant: TestAccount; other: TestAccount; hook: Hook };
beforeAll(async () => {
  const hook = hooks.hook();
  const [tenant, other] = await Promise.all([server().account(), server().account()]);
  await register(tenant, hook.url);
  world = { server: server(), tenant, other, hook };
});

interface Signed {
  body: Buffer;
  headers: Record<string, string>;
}

/** What the webhook receives for one more event. Its attempt has ended: one in flight would time out as the clock travels. */
async function receive({ server: { app }, tenant, hook } = world): Promise<Signed> {
  const count = hook.received.length + 1;
  const eventId = await ingestOne(tenant, { count, text: "ä€😀" });
  await hook.whenReceived(count);
  await app.whenIdle();
  const received = hook.received.filter(({ headers }) => headers["service-event-id"] === eventId);
  expect(received).toHaveLength(1);
  const [{ body, headers } = { body: Buffer.alloc(0), headers: {} }] = received;
  return { body, headers: headers as Record<string, string> };
}

const publishedKeys = async (app: TestApp, tenantId: string): Promise<Jwk[]> =>
  (await app.request("GET", `/v1/tenants/${tenantId}/jwks.json`)).body.keys;

const standardContent = ({ headers, body }: Signed) =>
  Buffer.concat([Buffer.from(`${headers["webhook-id"]}.${headers["webhook-timestamp"]}.`), body]);

/** The values of one version in `webhook-signature`. */
const signaturesOf = ({ headers }: Signed, version: "v1" | "v1a") =>
  (headers["webhook-signature"] ?? "")
    .split(" ")
    .filter((value) => value.startsWith(`${version},`))
    .map((value) => value.slice(version.length + 1));

const verifies = (content: Uint8Array, signature: string, key: Jwk) =>
  nacl.sign.detached.verify(content, Buffer.from(signature, "base64"), Buffer.from(key.x, "base64url"));

const keyOf = (keys: Jwk[], { headers }: Signed): Jwk => {
  const key = keys.find(({ kid }) => kid === headers["service-key-id"]);
  if (!key) throw new Error("Service-Key-Id names no published key");
  return key;
};

const hmac = (secret: string, signed: Signed) =>
  createHmac("sha256", Buffer.from(secret.slice("whsec_".length), "base64"))
    .update(standardContent(signed))
    .digest("base64");

const secretOf = async (account: TestAccount): Promise<string> =>
  (await account.get("/v1/tenants/signing-secret")).body.secret;

describe("a delivery", () => {
  test("Service-Signature is Ed25519 over the exact bytes of the body, by a published key", async () => {
    const signed = await receive();
    const key = keyOf(await publishedKeys(server(), world.tenant.id), signed);
    const signature = signed.headers["service-signature"] ?? "";
    expect(Buffer.from(signature, "base64")).toHaveLength(64);
    expect(verifies(signed.body, signature, key)).toBe(true);
    expect(verifies(Buffer.concat([signed.body, Buffer.from(" ")]), signature, key)).toBe(false);
    const [foreign] = await publishedKeys(server(), world.other.id);
    expect(foreign && verifies(signed.body, signature, foreign)).toBe(false);
  });

  test("the v1a signature is Ed25519 over id, time and body", async () => {
    const signed = await receive();
    const key = keyOf(await publishedKeys(server(), world.tenant.id), signed);
    const [signature = "", ...others] = signaturesOf(signed, "v1a");
    expect([others.length, verifies(standardContent(signed), signature, key)]).toEqual([0, true]);
  });

  test("the library of Standard Webhooks verifies it, and refuses another body, secret or time", async () => {
    const { body, headers } = await receive();
    const secret = await secretOf(world.tenant);
    expect(secret).toMatch(/^whsec_/);
    const library = new Webhook(secret);
    expect(library.verify(body.toString("utf8"), headers)).toEqual(JSON.parse(body.toString("utf8")));
    expect(() => library.verify(`${body}x`, headers)).toThrow();
    expect(() => library.verify(body.toString("utf8"), { ...headers, "webhook-timestamp": "1700000000" })).toThrow();
    const foreign = new Webhook(await secretOf(world.other));
    expect(() => foreign.verify(body.toString("utf8"), headers)).toThrow();
  });

  scenarios("GET /v1/events/{id}/delivery", () => world, {
    "is shown as it would be sent now, freshly signed": {
      section: "rules 7",
      async request({ tenant }) {
        const { headers } = await receive();
        return tenant.get(`/v1/events/${headers["service-event-id"]}/delivery`);
      },
      status: 200,
      never: ({ other }) => [other.id],
      async then({ tenant, hook }, { body: { headers, body } }) {
        expect(body).toBe(hook.received.at(-1)?.text);
        expect(Object.keys(headers)).toEqual([
          "Content-Type",
          "User-Agent",
          "Service-Event-Id",
          "Service-Signature",
          "Service-Key-Id",
          "webhook-id",
          "webhook-timestamp",
          "webhook-signature",
        ]);
        expect(Math.abs(Number(headers["webhook-timestamp"]) - Date.now() / 1000)).toBeLessThan(5);
        expect(new Webhook(await secretOf(tenant)).verify(body, headers)).toEqual(JSON.parse(body));
      },
    },
  });

  scenarios("GET /v1/tenants/{tenantId}/jwks.json", () => world, {
    "the keys are public and may be kept for an hour": {
      section: "rules 8",
      request: ({ server: { request }, tenant }) => request("GET", `/v1/tenants/${tenant.id}/jwks.json`),
      status: 200,
      headers: { "cache-control": "max-age=3600" },
      never: ({ other }) => [other.id],
      then: (_, { body }) =>
        expect(body).toEqual({
          keys: [
            {
              kty: "OKP",
              crv: "Ed25519",
              x: expect.stringMatching(/^[\w-]{43}$/),
              kid: expect.any(String),
              use: "sig",
              alg: "EdDSA",
            },
          ],
        }),
    },
  });
});

describe("rotation", () => {
  const clock = createTravelClock();
  const travelled = useServer({ clock });
  const minute = 60_000;
  const day = 24 * 60 * minute;
  let current: typeof world;

  /** The same account with a session of now, because sessions end while the clock travels. */
  async function again(): Promise<TestAccount> {
    const { tenant, server: app } = current;
    const credentials = { loginId: tenant.id, password: tenant.password };
    const token = (await app.request("POST", "/v1/tenants/auth/login", { body: credentials })).body.token;
    return {
      ...tenant,
      get: (path) => app.request("GET", path, { token }),
      post: (path, body) => app.request("POST", path, { token, ...(body !== undefined && { body }) }),
    };
  }

  beforeAll(async () => {
    const hook = hooks.hook();
    const [tenant, other] = [await travelled().account(), await travelled().account()];
    await register(tenant, hook.url);
    current = { server: travelled(), tenant, other, hook };
  });

  const kids = async () => (await publishedKeys(travelled(), current.tenant.id)).map(({ kid }) => kid);

  async function expectSignedBy(kid: string) {
    const signed = await receive(current);
    const key = keyOf(await publishedKeys(travelled(), current.tenant.id), signed);
    expect([key.kid, verifies(signed.body, signed.headers["service-signature"] ?? "", key)]).toEqual([kid, true]);
  }

  test("a new key is published at once, signs when it activates, and the old one stays for 7 days more", async () => {
    const [old = ""] = await kids();
    const rotated = await (await again()).post("/v1/tenants/signing-keys/rotate");
    expect(rotated.status).toBe(201);
    const { kid } = rotated.body;
    expect((await kids()).sort()).toEqual([old, kid].sort());
    await expectSignedBy(old);
    clock.travel(day - minute);
    await expectSignedBy(old);
    clock.travel(minute + 1);
    await expectSignedBy(kid);
    clock.travel(7 * day - minute);
    expect((await kids()).sort()).toEqual([old, kid].sort());
    clock.travel(minute + 1);
    expect(await kids()).toEqual([kid]);
  });

  test("activate_after_seconds 0 signs at once", async () => {
    const rotated = await (await again()).post("/v1/tenants/signing-keys/rotate", { activate_after_seconds: 0 });
    await expectSignedBy(rotated.body.kid);
  });

  test("after a rotation of the secret both sign, for 7 days", async () => {
    const account = await again();
    const old = await secretOf(account);
    expect(signaturesOf(await receive(current), "v1")).toHaveLength(1);
    const rotated = await account.post("/v1/tenants/signing-secret/rotate");
    expect(rotated.status).toBe(201);
    const { secret } = rotated.body;
    expect(secret).not.toBe(old);
    const both = await receive(current);
    expect(signaturesOf(both, "v1")).toEqual([hmac(secret, both), hmac(old, both)]);
    clock.travel(7 * day - minute);
    expect(signaturesOf(await receive(current), "v1")).toHaveLength(2);
    clock.travel(minute + 1);
    const after = await receive(current);
    expect(signaturesOf(after, "v1")).toEqual([hmac(secret, after)]);
  });

  test("the library verifies with either secret", async () => {
    const old = await secretOf(world.tenant);
    const { secret } = (await world.tenant.post("/v1/tenants/signing-secret/rotate")).body;
    const { body, headers } = await receive();
    for (const either of [old, secret]) {
      expect(new Webhook(either).verify(body.toString("utf8"), headers)).toEqual(JSON.parse(body.toString("utf8")));
    }
  });
});
