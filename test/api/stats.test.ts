// biome-ignore-all lint/suspicious/noThenProperty: rows of a scenario table have one
import { afterAll, beforeAll, expect } from "bun:test";
import {
  createTravelClock,
  gate,
  type Hook,
  type Hooks,
  ingestOne,
  isoPattern,
  register,
  settled,
  startHooks,
  until,
} from "../support/api-server.ts";
import type { TestAccount, TestApp } from "../support/test-app.ts";
import { type Scenario, scenarios, useServer } from "./scenario.ts";

interface World {
  server: TestApp;
  tenant: TestAccount;
  other: TestAccount;
  /** It has no webhook. */
  alone: TestAccount;
  /** Its webhook answers when `held` is opened. */
  waiting: TestAccount;
}

interface Bucket {
  at: string;
  accepted: number;
  delivered: number;
  failed: number;
  attempts: number;
  p50Ms: number | null;
  p95Ms: number | null;
}

let hooks: Hooks;
let world: World;
const held = gate();
let stuck: Hook;
const waitingIds: string[] = [];
// Before the server's own: it waits for what is in flight.
afterAll(() => {
  held.open();
  hooks.stop();
});
const clock = createTravelClock();
const server = useServer({ clock });
beforeAll(async () => {
  hooks = await startHooks();
  // Away from the edge of an hour: what follows takes a few seconds.
  const minuteOfHour = new Date(clock.now()).getUTCMinutes();
  if (minuteOfHour === 59) clock.travel(2 * 60_000);
  const [tenant, other, alone, waiting] = await Promise.all([
    server().account(),
    server().account(),
    server().account(),
    server().account(),
  ]);
  world = { server: server(), tenant, other, alone, waiting };
  stuck = hooks.hook(held.answer);
  const hook = hooks.hook((response, nth) => void response.writeHead([200, 404, 500, 200][nth - 1] ?? 200).end());
  await register(tenant, hook.url);
  for (let n = 0; n < 3; n += 1) await settled(tenant, await ingestOne(tenant));
  // Charts lag by a second.
  clock.travel(1000);
});

const sum = (buckets: Bucket[]) =>
  (["accepted", "delivered", "failed", "attempts"] as const).map((name) =>
    buckets.reduce((total, b) => total + b[name], 0),
  );

const noneWaits = { records: 0, oldestIngestionTimestamp: null };
const none = { accepted: 0, delivered: 0, failed: 0, attempts: 0, p50Ms: null, p95Ms: null };

const refused = (query: string, code = "invalid_request"): [string, Scenario<World>] => [
  `?${query}`,
  {
    section: "rules 7",
    request: ({ tenant }) => tenant.get(`/v1/stats?${query}`),
    status: 400,
    exact: true,
    body: { message: expect.stringMatching(/^\S.{10,}\.$/), code },
  },
];

scenarios("GET /v1/stats", () => world, {
  "counts accepted, delivered, failed, attempts and latency": {
    section: "rules 7",
    request: ({ tenant }) =>
      until(
        () => tenant.get("/v1/stats"),
        ({ body }) => sum(body.buckets)[3] === 4,
      ),
    status: 200,
    never: ({ other }) => [other.id],
    then(_, { body }) {
      expect(Object.keys(body)).toEqual(["buckets", "total", "waiting"]);
      expect(sum(body.buckets)).toEqual([3, 2, 1, 4]);
      const [busiest] = body.buckets.filter(({ attempts }: Bucket) => attempts > 0);
      expect(Object.keys(busiest).join()).toBe("at,accepted,delivered,failed,attempts,p50Ms,p95Ms");
      expect(busiest.p50Ms).toBeWithin(0, 1000);
      expect(busiest.p95Ms).toBeGreaterThanOrEqual(busiest.p50Ms);
    },
  },
  "an event that found no webhook has failed, without an attempt": {
    section: "rules 7",
    async given({ alone }) {
      await ingestOne(alone);
      clock.travel(1000);
    },
    request: ({ alone }) =>
      until(
        () => alone.get("/v1/stats"),
        ({ body }) => body.total.accepted === 1,
      ),
    status: 200,
    then(_, { body }) {
      expect(body.total).toEqual({ ...none, accepted: 1, failed: 1 });
    },
  },
  "every bucket of the range is there, also those in which nothing happened": {
    section: "rules 7",
    request: ({ tenant }) => tenant.get("/v1/stats?from=2026-01-01T00:00:00Z&to=2026-01-01T02:30:00Z&bucket=1h"),
    status: 200,
    exact: true,
    body: {
      buckets: ["00", "01", "02"].map((hour) => ({ at: `2026-01-01T${hour}:00:00.000Z`, ...none })),
      total: none,
      waiting: noneWaits,
    },
  },
  "the total is that of the buckets": {
    section: "rules 7",
    request: ({ tenant }) => tenant.get("/v1/stats?bucket=1h"),
    status: 200,
    then(_, { body: { total, buckets } }) {
      expect(Object.keys(total).join()).toBe("accepted,delivered,failed,attempts,p50Ms,p95Ms");
      expect([total.accepted, total.delivered, total.failed, total.attempts]).toEqual(sum(buckets));
      // All attempts lie in one hour, so their percentiles are those of its bucket.
      const { p50Ms, p95Ms } = buckets.find(({ attempts }: Bucket) => attempts > 0);
      expect([total.p50Ms, total.p95Ms]).toEqual([p50Ms, p95Ms]);
    },
  },
  "what waits is told whatever the range, and since when": {
    section: "rules 7",
    async given({ waiting }) {
      await register(waiting, stuck.url);
      for (let n = 0; n < 3; n += 1) waitingIds.push(await ingestOne(waiting));
      await stuck.whenReceived(3);
    },
    request: ({ waiting }) => waiting.get("/v1/stats?from=2026-01-01&to=2026-01-01&bucket=1d"),
    status: 200,
    async then({ waiting, tenant }, { body }) {
      const [{ ingestionTimestamp }] = (await waiting.get(`/v1/events/${waitingIds[0]}`)).body;
      expect(body.waiting).toEqual({ records: 3, oldestIngestionTimestamp: ingestionTimestamp });
      expect((await tenant.get("/v1/stats")).body.waiting).toEqual(noneWaits);
      held.open();
      const now = await until(
        () => waiting.get("/v1/stats"),
        ({ body }) => body.waiting.records === 0,
      );
      expect(now.body.waiting).toEqual(noneWaits);
    },
  },
  "without a range the last hour, by the minute": {
    section: "rules 7",
    request: ({ other }) => other.get("/v1/stats"),
    status: 200,
    then(_, { body }) {
      expect(body.buckets).toHaveLength(60);
      for (const bucket of body.buckets) expect(bucket).toEqual({ at: expect.stringMatching(isoPattern), ...none });
    },
  },
  "a wider bucket adds up": {
    section: "rules 7",
    request: ({ tenant }) => tenant.get("/v1/stats?bucket=1h"),
    status: 200,
    then: (_, { body }) => expect(sum(body.buckets)).toEqual([3, 2, 1, 4]),
  },
  ...Object.fromEntries([
    refused("bucket=30s"),
    refused("bucket=soon"),
    refused("from=yesterday"),
    refused("from=2026-01-02&to=2026-01-01"),
    refused("webhook="),
    refused("from=2020-01-01&to=2026-01-01&bucket=1m", "too_many_buckets"),
  ]),
  ...Object.fromEntries(
    (["id", "url"] as const).map((named): [string, Scenario<World>] => [
      `by the ${named} of a webhook the deliveries to it alone`,
      {
        section: "rules 7",
        async request({ tenant }) {
          const [webhook] = (await tenant.get("/v1/tenants/webhooks")).body;
          return tenant.get(`/v1/stats?bucket=1h&webhook=${encodeURIComponent(webhook[named])}`);
        },
        status: 200,
        async then({ tenant }, { body }) {
          const all = (await tenant.get("/v1/stats?bucket=1h")).body;
          const ofWebhook = ({ accepted: _, ...sums }: Bucket) => sums;
          expect(body).toEqual({ buckets: all.buckets.map(ofWebhook), total: ofWebhook(all.total) });
          expect(body.total).toMatchObject({ delivered: 2, failed: 1, attempts: 4 });
        },
      },
    ]),
  ),
  "a webhook that the account has not": {
    section: "rules 7",
    request: ({ other }) => other.get("/v1/stats?bucket=1h&webhook=wh_nobodys"),
    status: 200,
    body: { total: { delivered: 0, failed: 0, attempts: 0, p50Ms: null, p95Ms: null } },
  },
  "an API key": {
    section: "spec: Authentication",
    request: ({ server: { request }, tenant }) => request("GET", "/v1/stats", { token: tenant.apiKey }),
    status: 401,
  },
});

scenarios("GET /v1/tenants/me", () => world, {
  "counts events that were refused, by reason": {
    section: "rules 6",
    async given({ server: { request, operatorToken }, other }) {
      const send = (body: unknown, headers = {}) =>
        request("POST", "/v1/ingest", { token: other.apiKey, body, headers });
      const { status } = await request("POST", "/v1/ingest", { token: "svc_sk_none", body: { payload: {} } });
      const statuses = [
        status,
        (await send('{"payload":')).status,
        (await send(`{"payload":{"a":"${"x".repeat(300_000)}"}}`)).status,
        (await send({ payload: {} }, { "Content-Type": "text/plain" })).status,
        (await send({ payload: {} }, { "Idempotency-Key": "\u00e9" })).status,
      ];
      expect(statuses).toEqual([401, 400, 413, 415, 400]);
      const sendBatch = async (...payloads: unknown[]) => {
        const body = { events: payloads.map((payload) => ({ payload })) };
        return (await request("POST", "/v1/ingest/batch", { token: other.apiKey, body })).status;
      };
      // What could be read counts with all its events.
      expect(await sendBatch({}, { a: "x".repeat(300_000) }, {})).toBe(400);
      await request("POST", `/operator/tenants/${other.id}/suspend`, { token: operatorToken });
      expect((await other.ingest({})).status).toBe(403);
      expect(await sendBatch({}, {})).toBe(403);
      clock.travel(1000);
    },
    request: ({ other }) =>
      until(
        () => other.get("/v1/tenants/me"),
        ({ body }) => body.refused_this_month.inactive > 0,
      ),
    status: 200,
    body: { refused_this_month: { quota: 0, inactive: 3, invalid: 7 } },
    async then({ server: { request, operatorToken }, other }, { body }) {
      const seen = await request("GET", `/operator/tenants/${other.id}`, { token: operatorToken });
      expect(seen.body.refused_this_month).toEqual(body.refused_this_month);
    },
  },
});
