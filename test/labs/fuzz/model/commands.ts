import { expect } from "bun:test";
import fc from "fast-check";
import type { SeededAccount } from "../../../support/seeded-account.ts";
import type { Answer } from "../../../support/test-app.ts";
import {
  accept,
  cancelHalfway,
  cancelWaiting,
  isFailed,
  type Model,
  type ModelEvent,
  type ModelTenant,
  type ReplayKind,
  receivers,
  replaceWebhooks,
  replay,
  webhookLimits,
} from "./model.ts";
import type { Real } from "./real.ts";

export type Command = fc.AsyncCommand<Model, Real>;

/** A command on one of the tenants that are left. */
export function onTenant(
  which: number,
  name: string,
  run: (tenant: ModelTenant, real: Real, model: Model) => Promise<void>,
): Command {
  const living = ({ tenants }: Model) => tenants.filter(({ isDeleted }) => !isDeleted);
  return {
    check: (model) => living(model).length > 0,
    async run(model, real) {
      const tenants = living(model);
      const tenant = tenants[which % tenants.length];
      real.counts.commands += 1;
      if (tenant) await run(tenant, real, model);
    },
    toString: () => `tenant ${which}: ${name}`,
  };
}

const which = fc.nat({ max: 1 });
const nth = fc.nat({ max: 20 });
/** The one of a list that a number stands for. */
export const at = <T>(list: readonly T[], n: number): T | undefined => list[n % Math.max(1, list.length)];

// ---------------------------------------------------------------- accounts

const mostTenants = 3;

/** A free account, as anybody may make it. */
const createTenant = async ({ tenants }: Model, { server }: Real) => addTenant(tenants, await server.account());

export function addTenant(
  tenants: ModelTenant[],
  { id, jwt, apiKey }: SeededAccount,
  tier: ModelTenant["tier"] = "free",
): void {
  tenants.push({
    id,
    jwt,
    keys: [{ key: apiKey, isActive: true }],
    tier,
    webhooks: [],
    events: [],
    idempotency: new Map(),
    replays: [],
    isDeleted: false,
  });
}

const createAnother: fc.Arbitrary<Command> = fc.constant({
  check: ({ tenants }: Readonly<Model>) => tenants.length < mostTenants,
  run: createTenant,
  toString: () => "create another tenant",
});

const setTier = fc.tuple(which, fc.constantFrom("free", "business", "enterprise")).map(([n, tier]) =>
  onTenant(n, `set the tier to ${tier}`, async (tenant, { server }) => {
    const token = server.operatorToken;
    const answer = await server.request("PUT", `/operator/tenants/${tenant.id}/tier`, { token, body: { tier } });
    expect(answer.status).toBe(200);
    tenant.tier = tier as keyof typeof webhookLimits;
  }),
);

const rotateKey = fc.tuple(which, fc.constantFrom(0, 3_600)).map(([n, grace_period_seconds]) =>
  onTenant(n, `rotate the key, grace ${grace_period_seconds}`, async (tenant, { ask }) => {
    const body = { grace_period_seconds };
    const { status, body: made } = await ask("POST", "/v1/tenants/api-keys/rotate", { token: tenant.jwt, body });
    expect(status).toBe(201);
    // One that has ended stays so; the grace of the others is longer than any run.
    const others = tenant.keys.map(({ key, isActive }) => ({ key, isActive: isActive && grace_period_seconds > 0 }));
    tenant.keys = [{ key: made.key, isActive: true }, ...others];
  }),
);

const deleteTenant = which.map((n) =>
  onTenant(n, "delete it", async (tenant, { ask }) => {
    expect((await ask("DELETE", "/v1/tenants", { token: tenant.jwt })).status).toBe(204);
    tenant.isDeleted = true;
  }),
);

// ---------------------------------------------------------------- webhooks

const names = Object.keys(receivers);

/** Mostly one that may be saved, if the plan has room for it. */
const entries = fc
  .oneof({ weight: 3, arbitrary: fc.shuffledSubarray(names) }, fc.array(fc.constantFrom(...names), { maxLength: 4 }))
  .chain((chosen) =>
    fc.tuple(
      ...chosen.map((receiver) => fc.record({ receiver: fc.constant(receiver), name: fc.constantFrom("", "Orders") })),
    ),
  );

const rarely = fc.nat({ max: 5 }).map((n) => n === 5);

const putWebhooks = fc.tuple(which, entries, rarely).map(([n, wanted, hasBadEntry]) => {
  const words = wanted.map(({ receiver }) => receiver).join(", ");
  return onTenant(n, `register [${words}]${hasBadEntry ? " and a bad one" : ""}`, async (tenant, real, model) => {
    const webhooks = wanted.map(({ receiver, name }) => {
      return { url: real.urlOf(model.tenants.indexOf(tenant), receiver), name };
    });
    const body: unknown[] = webhooks.map(({ url, name }) => ({ webhook_url: url, name }));
    if (hasBadEntry) body.push({ webhook_url: "ftp://shop.example/" });
    const { status, body: saved } = await real.ask("PUT", "/v1/tenants/webhooks", { token: tenant.jwt, body });
    const isDouble = new Set(webhooks.map(({ url }) => url)).size < webhooks.length;
    const isRefused = hasBadEntry || isDouble || webhooks.length > webhookLimits[tenant.tier];
    expect(status).toBe(isRefused ? 400 : 200);
    if (isRefused) return;
    expect(saved).toEqual(body);
    replaceWebhooks(tenant, webhooks);
  });
});

// ---------------------------------------------------------------- events

const payload = fc.constantFrom('{"n":1}', '{ "n": 1.0, "a": [1, 2] }', '{"text":"é\\u00e9","__proto__":{}}');

/** The key may be one of an earlier request, with the same body or another one; the API key one that has ended. */
const ingest = fc
  .tuple(which, fc.array(payload, { minLength: 1, maxLength: 3 }), fc.boolean(), fc.option(fc.nat({ max: 3 })), nth)
  .map(([n, payloads, isBatch, idempotencyKey, keyNumber]) => {
    const words = `ingest ${payloads.length}${isBatch ? " as a batch" : ""}, idempotency ${idempotencyKey}`;
    return onTenant(n, `${words}, key ${keyNumber}`, async (tenant, real) => {
      const sent = isBatch ? payloads : payloads.slice(0, 1);
      const path = isBatch ? "/v1/ingest/batch" : "/v1/ingest";
      const events = sent.map((text) => `{"payload":${text}}`);
      const body = isBatch ? `{"events":[${events.join(",")}]}` : (events[0] ?? "");
      const known = at(tenant.keys, keyNumber);
      const headers = idempotencyKey === null ? {} : { "Idempotency-Key": `key ${idempotencyKey}` };
      const answer = await real.ask("POST", path, { token: known?.key ?? "", body, headers });
      if (!known?.isActive) {
        expect(answer.status).toBe(401);
        return;
      }
      const request = `${path} ${body}`;
      const earlier = idempotencyKey === null ? undefined : tenant.idempotency.get(`key ${idempotencyKey}`);
      if (earlier && earlier.request !== request) {
        expect(answer.status).toBe(422);
        return;
      }
      expect(answer.status).toBe(202);
      const eventIds: string[] = isBatch ? answer.body.eventIds : [answer.body.eventId];
      if (earlier) {
        expect(eventIds).toEqual(earlier.eventIds);
        return;
      }
      expect(eventIds).toHaveLength(sent.length);
      if (idempotencyKey !== null) tenant.idempotency.set(`key ${idempotencyKey}`, { request, eventIds });
      for (const [i, text] of sent.entries()) accept(tenant, eventIds[i] ?? "", text);
      await real.whenSettled(tenant);
    });
  });

// ---------------------------------------------------------------- replays

const label = fc.constantFrom("once more", "é", " ");

const replaySingle = fc.tuple(which, nth, label).map(([n, number, replayGroupId]) =>
  onTenant(n, `replay event ${number}`, async (tenant, real) => {
    const event = at(tenant.events, number);
    if (!event) return;
    const body = { eventId: event.id, replayGroupId };
    const answer = await real.ask("POST", "/v1/events/replays/single", { token: tenant.jwt, body });
    expect([answer.status, answer.body]).toEqual([202, { status: "initiated" }]);
    const id = replayIdOf(answer);
    replay(tenant, { id, kind: "single", label: replayGroupId, events: [event] }, "completed");
    await real.whenSettled(tenant);
  }),
);

const replayStrange = fc.tuple(which, nth).map(([n, number]) =>
  onTenant(n, `replay an event of somebody else, or of nobody`, async (tenant, real, model) => {
    const other = model.tenants.find((candidate) => candidate !== tenant && candidate.events.length > 0);
    const eventId = (other && at(other.events, number)?.id) ?? "evt_01jc8x2m4e7n9q3s5v7y9a1c3e";
    const body = { eventId, replayGroupId: "label" };
    const { status } = await real.ask("POST", "/v1/events/replays/single", { token: tenant.jwt, body });
    expect(status).toBe(other && !other.isDeleted ? 403 : 404);
  }),
);

const replayMany = fc
  .tuple(which, fc.constantFrom<Exclude<ReplayKind, "single">>("all", "failed", "timeline"), label, nth, nth)
  .map(([n, kind, replayGroupId, from, to]) =>
    onTenant(n, `replay ${kind} ${kind === "timeline" ? `${from} to ${to}` : ""}`, async (tenant, real) => {
      const timeOf = async (event: ModelEvent | undefined): Promise<string> => {
        if (!event) return "2026-03-01T00:00:00Z";
        return (await real.get(tenant, `/v1/events/${event.id}`)).body[0].ingestionTimestamp;
      };
      const times = [await timeOf(at(tenant.events, from)), await timeOf(at(tenant.events, to))].sort();
      const [startTime = "", endTime = ""] = times;
      const range = kind === "timeline" ? { startTime, endTime } : {};
      const token = tenant.jwt;
      const preview = { kind, ...range };
      const told = await real.ask("POST", "/v1/events/replays/preview", { token, body: preview });
      const body = { replayGroupId, ...range };
      const answer = await real.ask("POST", `/v1/events/replays/${kind}`, { token, body });
      expect([answer.status, answer.text]).toEqual([202, ""]);
      const selected = [];
      for (const event of tenant.events) {
        const time = kind === "timeline" ? await timeOf(event) : "";
        if (kind === "all" || (kind === "failed" ? isFailed(event) : time >= startTime && time <= endTime)) {
          selected.push(event);
        }
      }
      expect(told.body).toEqual({ selected: selected.length });
      replay(tenant, { id: replayIdOf(answer), kind, label: replayGroupId, events: selected }, "completed");
      await real.whenSettled(tenant);
    }),
  );

/** A selection that is queued in one piece, so that a cancellation finds all of it or nothing. */
const inOnePiece = 100;

/** The first of two is let alone; the other has to wait for it, and is cancelled at once. */
const replayAndCancel = fc.tuple(which, label, fc.boolean()).map(([n, replayGroupId, hasFirst]) =>
  onTenant(n, `cancel a replay of all${hasFirst ? " behind another" : ""}`, async (tenant, real) => {
    if (tenant.events.length > inOnePiece) return;
    const { jwt: token } = tenant;
    const start = () => real.ask("POST", "/v1/events/replays/all", { token, body: { replayGroupId } });
    const order = { kind: "all", label: replayGroupId, events: tenant.events.slice() } as const;
    if (hasFirst) replay(tenant, { ...order, id: replayIdOf(await start()) }, "completed");
    const id = replayIdOf(await start());
    const path = `/v1/events/replays/${id}`;
    expect((await real.ask("DELETE", path, { token })).status).toBe(200);
    await real.whenSettled(tenant);
    const { status, queued, delivered, failed, skipped, returned } = (await real.get(tenant, path)).body;
    if (status === "cancelled" && queued + skipped === 0) cancelWaiting(tenant, { ...order, id });
    else if (returned === undefined) replay(tenant, { ...order, id }, status);
    else {
      for (const event of order.events) await learn(tenant, real, event);
      const counts = { selected: order.events.length, queued, delivered, failed, skipped, returned };
      tenant.replays.push({ id, kind: order.kind, label: order.label, status, ...counts });
    }
  }),
);

async function learn(tenant: ModelTenant, real: Real, event: ModelEvent): Promise<void> {
  const { body: records } = await real.get(tenant, `/v1/events/${event.id}`);
  const { body: attempts } = await real.get(tenant, `/v1/events/${event.id}/attempts?size=1000`);
  const byUrl = Map.groupBy(attempts as { targetWebhook: string }[], ({ targetWebhook }) => targetWebhook);
  const counts = new Map([...byUrl].map(([url, { length }]) => [url, length]));
  cancelHalfway(tenant, event, records, counts);
}

const replayIdOf = ({ headers }: Answer) => headers.get("location")?.split("/").at(-1) ?? "";

/** What changes something; what stands here more often is done more often. */
export const changes: fc.Arbitrary<Command>[] = [
  createAnother,
  setTier,
  setTier,
  rotateKey,
  putWebhooks,
  putWebhooks,
  putWebhooks,
  ingest,
  ingest,
  ingest,
  ingest,
  ingest,
  replaySingle,
  replaySingle,
  replayStrange,
  replayMany,
  replayMany,
  replayMany,
  replayAndCancel,
  deleteTenant,
];
