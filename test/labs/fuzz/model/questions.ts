import { expect } from "bun:test";
import fc from "fast-check";
import { at, type Command, onTenant } from "./commands.ts";
import { type Model, type ModelReplay, recordsOf } from "./model.ts";
import type { Real } from "./real.ts";

/** What only asks: each answer is held against the model. */

const which = fc.nat({ max: 1 });
const nth = fc.nat({ max: 20 });

const listEvents = fc
  .tuple(
    which,
    fc.nat({ max: 3 }),
    fc.constantFrom(1, 2, 20, 1_000),
    fc.constantFrom(null, "DELIVERED", "FAILED", "PENDING"),
  )
  .map(([n, page, size, state]) =>
    onTenant(n, `list page ${page} of ${size}, ${state}`, async (tenant, real) => {
      const path = state === null ? "/v1/events" : `/v1/events/state/${state}`;
      const { status, body } = await real.get(tenant, `${path}?page=${page}&size=${size}`);
      const all = recordsOf(tenant).filter(({ record }) => state === null || record.state === state);
      expect([status, body.total]).toEqual([200, all.length]);
      const wanted = all
        .slice(page * size, (page + 1) * size)
        .map(({ event, record }) => real.shown(event, tenant, record));
      expect(body.events).toEqual(wanted);
    }),
  );

const listByWebhook = fc.tuple(which, nth).map(([n, number]) =>
  onTenant(n, `list what went to webhook ${number}`, async (tenant, real) => {
    const url = at(tenant.webhooks, number)?.url;
    if (url === undefined) return;
    const { body } = await real.get(tenant, `/v1/events?size=1000&webhook=${encodeURIComponent(url)}`);
    // Also what went to the URL before it was removed and registered again.
    const wanted = recordsOf(tenant).filter(({ record }) => record.webhook?.url === url);
    expect([body.total, body.totalIsExact]).toEqual([wanted.length, true]);
    expect(body.events).toEqual(wanted.map(({ event, record }) => real.shown(event, tenant, record)));
  }),
);

const listBetween = fc.tuple(which, nth, nth, fc.boolean()).map(([n, first, second, hasPayload]) =>
  onTenant(n, `list events ${first} to ${second}`, async (tenant, real) => {
    const times = new Map<string, string>();
    for (const { id } of tenant.events) {
      times.set(id, (await real.get(tenant, `/v1/events/${id}`)).body[0].ingestionTimestamp);
    }
    const [from = "2026-03-01", to = "2026-03-01"] = [at(tenant.events, first), at(tenant.events, second)]
      .flatMap((event) => (event ? [times.get(event.id) ?? ""] : []))
      .sort();
    const { body } = await real.get(tenant, `/v1/events?size=1000&from=${from}&to=${to}&payload=${hasPayload}`);
    const wanted = recordsOf(tenant).filter(({ event }) => {
      const time = times.get(event.id) ?? "";
      return time >= from && time <= to;
    });
    expect([body.total, body.totalIsExact]).toEqual([wanted.length, true]);
    const shown = wanted.map(({ event, record }) => real.shown(event, tenant, record));
    expect(body.events).toEqual(hasPayload ? shown : shown.map((one) => ({ ...one, originalPayload: null })));
  }),
);

const getEvent = fc.tuple(which, nth).map(([n, number]) =>
  onTenant(n, `get event ${number}, also as another tenant`, async (tenant, real, model) => {
    const event = at(tenant.events, number);
    if (!event) return;
    const { body } = await real.get(tenant, `/v1/events/${event.id}`);
    expect(body).toEqual(event.records.map((record) => real.shown(event, tenant, record)));
    const attempts = (await real.get(tenant, `/v1/events/${event.id}/attempts`)).body;
    for (const [url, count] of event.attempts) {
      const numbers = attempts
        .filter(({ targetWebhook }: { targetWebhook: string }) => targetWebhook === url)
        .map(({ number }: { number: number }) => number);
      expect(numbers).toEqual(Array.from({ length: count }, (_, i) => i + 1));
    }
    const other = model.tenants.find((candidate) => candidate !== tenant && !candidate.isDeleted);
    for (const path of other ? ["", "/attempts", "/delivery"] : []) {
      expect(other && (await real.get(other, `/v1/events/${event.id}${path}`)).status).toBe(404);
    }
  }),
);

const listWebhooks = which.map((n) =>
  onTenant(n, "list the webhooks", async (tenant, real) => {
    const { body } = await real.get(tenant, "/v1/tenants/webhooks");
    const wanted = tenant.webhooks.map(({ url, name }) => ({ id: expect.any(String), url, name }));
    expect(body).toEqual(wanted);
    const health = (await real.get(tenant, "/v1/tenants/webhooks/health")).body;
    const counted = health.map(({ url, delivered, failed, pending }: Record<string, unknown>) => [
      url,
      delivered,
      failed,
      pending,
    ]);
    const own = tenant.webhooks.map((webhook) => {
      const states = recordsOf(tenant).flatMap(({ record }) => (record.webhook === webhook ? [record.state] : []));
      const count = (state: string) => states.filter((candidate) => candidate === state).length;
      return [webhook.url, count("DELIVERED"), count("FAILED"), 0];
    });
    expect(counted).toEqual(own);
  }),
);

const listKeys = which.map((n) =>
  onTenant(n, "list the keys", async (tenant, real) => {
    const { body } = await real.get(tenant, "/v1/tenants/api-keys");
    const shown = body.map(({ key, is_active }: { key: string; is_active: boolean }) => ({ key, isActive: is_active }));
    expect(shown).toEqual(tenant.keys);
  }),
);

const listReplays = which.map((n) =>
  onTenant(n, "list the replays", async (tenant, real) => {
    const { body } = await real.get(tenant, "/v1/events/replays?size=1000");
    expect(body.total).toBe(tenant.replays.length);
    expect(body.replays).toEqual(tenant.replays.toReversed().map(replayShown));
  }),
);

const getReplay = fc.tuple(which, nth, fc.boolean()).map(([n, number, isCancelled]) =>
  onTenant(n, `${isCancelled ? "cancel" : "get"} replay ${number}, which is over`, async (tenant, real, model) => {
    const replay = at(tenant.replays, number);
    if (!replay) return;
    const [method, path] = [isCancelled ? "DELETE" : "GET", `/v1/events/replays/${replay.id}`];
    const { status, body } = await real.ask(method, path, { token: tenant.jwt });
    expect([status, body]).toEqual([200, replayShown(replay)]);
    const other = model.tenants.find((candidate) => candidate !== tenant && !candidate.isDeleted);
    if (other) expect((await real.ask(method, path, { token: other.jwt })).status).toBe(404);
  }),
);

const replayShown = ({ label, ...rest }: ModelReplay) => ({
  replayGroupId: label,
  superseded: 0,
  createdAt: expect.any(String),
  completedAt: expect.any(String),
  ...rest,
});

const showAccount = which.map((n) =>
  onTenant(n, "show the account", async (tenant, real) => {
    const { body } = await real.get(tenant, "/v1/tenants/me");
    expect(body).toMatchObject({ tenant_id: tenant.id, tier: tenant.tier, events_this_month: tenant.events.length });
  }),
);

/** Nothing of a deleted account answers (rules, section 4). */
const askDeleted: fc.Arbitrary<Command> = nth.map((number) => ({
  check: ({ tenants }: Readonly<Model>) => tenants.some(({ isDeleted }) => isDeleted),
  async run({ tenants }: Model, real: Real) {
    const tenant = at(
      tenants.filter(({ isDeleted }) => isDeleted),
      number,
    );
    if (!tenant) return;
    for (const path of ["/v1/tenants/me", "/v1/events", "/v1/tenants/webhooks", "/v1/events/replays"]) {
      expect((await real.get(tenant, path)).status).toBe(401);
    }
    const token = tenant.keys[0]?.key ?? "";
    expect((await real.ask("POST", "/v1/ingest", { token, body: { payload: {} } })).status).toBe(401);
    for (const path of ["status", "jwks.json"]) {
      expect((await real.ask("GET", `/v1/tenants/${tenant.id}/${path}`)).status).toBe(404);
    }
  },
  toString: () => "ask for a deleted account",
}));

export const questions: fc.Arbitrary<Command>[] = [
  listEvents,
  listEvents,
  listByWebhook,
  listBetween,
  getEvent,
  listWebhooks,
  listKeys,
  listReplays,
  getReplay,
  showAccount,
  askDeleted,
];
