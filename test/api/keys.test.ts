// biome-ignore-all lint/suspicious/noThenProperty: rows of a scenario table have one
import { beforeAll, describe, expect, test } from "bun:test";
import { createTravelClock, ingestOne, isoPattern, register, startHooks } from "../support/api-server.ts";
import type { TestAccount, TestApp } from "../support/test-app.ts";
import { type Scenario, scenarios, useServer } from "./scenario.ts";

/** Specification, "API keys"; rules, sections 5 and 8: API keys, signing keys and secrets, and their rotation. */

const { any, stringMatching } = expect;

interface World {
  server: TestApp;
  ada: TestAccount;
  eve: TestAccount;
}

const minute = 60_000;
const hour = 60 * minute;
const day = 24 * hour;
const week = 7 * day;

const clock = createTravelClock();
const server = useServer({ clock });
let ada: TestAccount;
let eve: TestAccount;

beforeAll(async () => {
  ada = await server().account();
  eve = await server().account();
});

const world = (): World => ({ server: server(), ada, eve });

const keyRecord = {
  id: stringMatching(/^key_[0-9a-z]{26}$/),
  key: stringMatching(/^svc_sk_[0-9A-Za-z]{40}$/),
  is_active: true,
  created_at: stringMatching(isoPattern),
  last_used: null,
  expires_at: null,
};

const rotate = (account: TestAccount, seconds?: unknown) =>
  account.post("/v1/tenants/api-keys/rotate", seconds === undefined ? undefined : { grace_period_seconds: seconds });

const worksFor = async (key: string) =>
  (await server().request("POST", "/v1/ingest", { token: key, body: { payload: {} } })).status === 202;

/** Rotates a key of a fresh account. */
let rotated: TestAccount;
const fresh = async ({ server }: World) => {
  rotated = await server.account();
};

scenarios<World>("GET /v1/tenants/api-keys", world, {
  "a new account has one, never used": {
    section: "spec: API keys",
    request: ({ ada }) => ada.get("/v1/tenants/api-keys"),
    status: 200,
    exact: true,
    body: [keyRecord],
    headers: { "Cache-Control": "no-store" },
    never: ({ eve }) => [eve.apiKey, eve.id],
  },
  "its use is seen at once": {
    section: "spec: API key record",
    given: ({ eve }) => eve.ingest({}),
    request: ({ eve }) => eve.get("/v1/tenants/api-keys"),
    status: 200,
    exact: true,
    body: ({ eve }: World) => [{ ...keyRecord, key: eve.apiKey, last_used: stringMatching(isoPattern) }],
  },
  "its use is still known when it is written": {
    section: "spec: API key record",
    async given({ eve }) {
      await eve.ingest({});
      clock.travel(60_000);
    },
    request: ({ eve }) => eve.get("/v1/tenants/api-keys"),
    status: 200,
    exact: true,
    body: ({ eve }: World) => [{ ...keyRecord, key: eve.apiKey, last_used: stringMatching(isoPattern) }],
  },
});

const badDelays: Record<string, unknown> = {
  "-1": -1,
  "604,801": 604_801,
  "1.5": 1.5,
  "a text": "60",
  null: null,
  true: true,
};

const delayRefusals = (path: string, field: string, section: string): Record<string, Scenario<World>> =>
  Object.fromEntries(
    Object.entries(badDelays).map(([name, delay]) => [
      `with ${name} seconds`,
      {
        section,
        request: ({ ada }) => ada.post(path, { [field]: delay }),
        status: 400,
        exact: true,
        body: { message: stringMatching(new RegExp(`^${field} must .*\\.$`)), code: "invalid_request" },
      },
    ]),
  );

scenarios<World>("POST /v1/tenants/api-keys/rotate", world, {
  "without a body the others stop at once": {
    section: "rules 5",
    given: fresh,
    request: () => rotate(rotated),
    status: 201,
    exact: true,
    body: keyRecord,
    never: () => [rotated.apiKey],
    async then(_, { body }) {
      expect([await worksFor(rotated.apiKey), await worksFor(body.key)]).toEqual([false, true]);
      const listed = (await rotated.get("/v1/tenants/api-keys")).body;
      expect(listed).toEqual([
        { ...keyRecord, id: body.id, key: body.key, last_used: stringMatching(isoPattern) },
        { ...keyRecord, key: rotated.apiKey, is_active: false, expires_at: stringMatching(isoPattern) },
      ]);
    },
  },
  "with grace 0, too": {
    section: "rules 5",
    given: fresh,
    request: () => rotate(rotated, 0),
    status: 201,
    exact: true,
    body: keyRecord,
    then: async () => expect(await worksFor(rotated.apiKey)).toBe(false),
  },
  "for good: the old one stays refused when the clock is set back": {
    section: "rules 5",
    given: fresh,
    request: () => rotate(rotated),
    status: 201,
    exact: true,
    body: keyRecord,
    async then(_, { body }) {
      clock.travel(-hour);
      expect([await worksFor(rotated.apiKey), await worksFor(body.key)]).toEqual([false, true]);
      clock.travel(hour);
    },
  },
  "with grace both work until it is over": {
    section: "rules 5",
    given: fresh,
    request: () => rotate(rotated, 3600),
    status: 201,
    exact: true,
    body: keyRecord,
    async then(_, { body }) {
      clock.travel(hour - minute);
      expect([await worksFor(rotated.apiKey), await worksFor(body.key)]).toEqual([true, true]);
      clock.travel(minute);
      expect([await worksFor(rotated.apiKey), await worksFor(body.key)]).toEqual([false, true]);
      const old = (await rotated.get("/v1/tenants/api-keys")).body[1];
      expect(old).toMatchObject({ key: rotated.apiKey, is_active: false });
      expect(Date.parse(old.expires_at) - Date.parse(body.created_at)).toBe(hour);
    },
  },
  "the earlier of its own end and now + grace counts, for every other key": {
    section: "rules 5",
    async given(world) {
      await fresh(world);
      await rotate(rotated, 60);
    },
    request: () => rotate(rotated, 604_800),
    status: 201,
    async then(_, { body }) {
      const [newest, second, first] = (await rotated.get("/v1/tenants/api-keys")).body;
      const lifetime = (key: { expires_at: string }) =>
        Math.round((Date.parse(key.expires_at) - Date.parse(body.created_at)) / 1000);
      expect(newest).toMatchObject({ id: body.id, expires_at: null });
      expect(lifetime(first)).toBeLessThanOrEqual(60);
      expect(lifetime(second)).toBe(604_800);
      await rotate(rotated, 0);
      expect(
        (await rotated.get("/v1/tenants/api-keys")).body.map(({ is_active }: { is_active: boolean }) => is_active),
      ).toEqual([true, false, false, false]);
    },
  },
  "another account's keys stay": {
    section: "rules 5",
    request: ({ ada }) => rotate(ada),
    status: 201,
    then: async ({ eve }) => expect(await worksFor(eve.apiKey)).toBe(true),
  },
  ...delayRefusals("/v1/tenants/api-keys/rotate", "grace_period_seconds", "rules 5"),
});

const jwk = {
  kty: "OKP",
  crv: "Ed25519",
  x: stringMatching(/^[\w-]{43}$/),
  kid: stringMatching(/^sk_[0-9a-z]{26}$/),
  use: "sig",
  alg: "EdDSA",
};

const published = async (account: TestAccount): Promise<string[]> =>
  (await server().request("GET", `/v1/tenants/${account.id}/jwks.json`)).body.keys.map(
    ({ kid }: { kid: string }) => kid,
  );

scenarios<World>("GET /v1/tenants/{tenantId}/jwks.json", world, {
  "the public keys, for anybody": {
    section: "rules 8",
    request: ({ server, ada }) => server.request("GET", `/v1/tenants/${ada.id}/jwks.json`),
    status: 200,
    exact: true,
    body: { keys: [jwk] },
    headers: { "Cache-Control": "max-age=3600" },
    never: () => ['"d"', "whsec_", "argon2"],
  },
  "of an unknown tenant": {
    section: "rules 8",
    request: ({ server }) => server.request("GET", "/v1/tenants/t0000000000000/jwks.json"),
    status: 404,
    exact: true,
    body: { message: any(String), code: "tenant_not_found" },
    headers: { "Cache-Control": "no-store" },
  },
});

const rotatedKey = {
  kid: jwk.kid,
  activates_at: stringMatching(isoPattern),
  earlier_published_until: stringMatching(isoPattern),
};

scenarios<World>("POST /v1/tenants/signing-keys/rotate", world, {
  ...delayRefusals("/v1/tenants/signing-keys/rotate", "activate_after_seconds", "rules 8"),
  "publishes at once, to sign a day later; the old one stays 7 days longer": {
    section: "rules 8",
    given: fresh,
    request: () => rotated.post("/v1/tenants/signing-keys/rotate"),
    status: 201,
    exact: true,
    body: rotatedKey,
    never: () => ['"d"', "PRIVATE"],
    async then({ server }, { body }) {
      const keys = await published(rotated);
      expect(keys).toEqual([body.kid, expect.not.stringMatching(body.kid)]);
      expect(Date.parse(body.earlier_published_until) - Date.parse(body.activates_at)).toBe(week);
      expect(Math.abs(Date.parse(body.activates_at) - clock.now() - day)).toBeLessThan(minute);
      clock.travel(day + week - minute);
      expect(await published(rotated)).toEqual(keys);
      clock.travel(minute);
      expect((await server.request("GET", `/v1/tenants/${rotated.id}/jwks.json`)).body).toEqual({
        keys: [{ ...jwk, kid: body.kid }],
      });
    },
  },
  "activates at once with 0": {
    section: "rules 8",
    given: fresh,
    request: () => rotated.post("/v1/tenants/signing-keys/rotate", { activate_after_seconds: 0 }),
    status: 201,
    exact: true,
    body: rotatedKey,
    then: (_, { body }) => expect(Date.parse(body.activates_at)).toBeLessThanOrEqual(clock.now()),
  },
  "keeps one published for 7 days longer that has not begun to sign": {
    section: "rules 8",
    async given(world) {
      await fresh(world);
      await rotated.post("/v1/tenants/signing-keys/rotate");
    },
    request: () => rotated.post("/v1/tenants/signing-keys/rotate", { activate_after_seconds: 0 }),
    status: 201,
    exact: true,
    body: rotatedKey,
    async then(_, { body }) {
      clock.travel(week - minute);
      expect(await published(rotated)).toEqual([body.kid, any(String), any(String)]);
      clock.travel(minute);
      expect(await published(rotated)).toEqual([body.kid]);
    },
  },
});

const secret = stringMatching(/^whsec_[A-Za-z0-9+/]{32,}={0,2}$/);
let firstSecret: string;

scenarios<World>("GET /v1/tenants/signing-secret", world, {
  "shows it": {
    section: "rules 8",
    given: fresh,
    request: () => rotated.get("/v1/tenants/signing-secret"),
    status: 200,
    exact: true,
    body: { secret, earlier_secret_expires_at: null },
    then(_, { body }) {
      firstSecret = body.secret;
    },
  },
});

scenarios<World>("POST /v1/tenants/signing-secret/rotate", world, {
  "replaces it, and both sign for 7 days": {
    section: "rules 8",
    request: () => rotated.post("/v1/tenants/signing-secret/rotate"),
    status: 201,
    exact: true,
    body: { secret, earlier_secret_expires_at: stringMatching(isoPattern) },
    never: () => [firstSecret],
    async then({ server }, { body }) {
      expect((await rotated.get("/v1/tenants/signing-secret")).body).toEqual(body);
      clock.travel(week + 1000);
      const login = { loginId: rotated.id, password: rotated.password };
      const { token } = (await server.request("POST", "/v1/tenants/auth/login", { body: login })).body;
      const later = await server.request("GET", "/v1/tenants/signing-secret", { token });
      expect(later.body).toEqual({ secret: body.secret, earlier_secret_expires_at: null });
    },
  },
});

describe("what deliveries carry (rules, section 8)", () => {
  const request = async (account: TestAccount, eventId: string) =>
    (await account.get(`/v1/events/${eventId}/delivery`)).body.headers as Record<string, string>;
  const logInAgain = async ({ id: loginId, password }: TestAccount) => {
    const { token } = (await server().request("POST", "/v1/tenants/auth/login", { body: { loginId, password } })).body;
    return { get: (path: string) => server().request("GET", path, { token }) } as TestAccount;
  };

  test("the new key signs from its time on, and two secrets sign for 7 days", async () => {
    const hooks = await startHooks();
    const account = await server().account();
    await register(account, hooks.hook().url);
    const eventId = await ingestOne(account);
    const [oldKey] = await published(account);
    const secrets = (headers: Record<string, string>) => headers["webhook-signature"]?.match(/\bv1,/g)?.length;

    expect(secrets(await request(account, eventId))).toBe(1);
    const { kid } = (await account.post("/v1/tenants/signing-keys/rotate", { activate_after_seconds: 3600 })).body;
    await account.post("/v1/tenants/signing-secret/rotate");
    const before = await request(account, eventId);
    expect([before["Service-Key-Id"], secrets(before)]).toEqual([oldKey, 2]);

    clock.travel(hour);
    expect((await request(account, eventId))["Service-Key-Id"]).toBe(kid);
    clock.travel(week);
    const after = await request(await logInAgain(account), eventId);
    expect([after["Service-Key-Id"], secrets(after)]).toEqual([kid, 1]);
    hooks.stop();
  });
});
