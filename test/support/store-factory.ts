import type { Act } from "../../src/domain/audit.ts";
import { type AnswerHead, type DeliveryState, type DueDelivery, deliveryStates } from "../../src/domain/delivery.ts";
import { DomainError } from "../../src/domain/errors.ts";
import type { JsonText } from "../../src/domain/event.ts";
import type { FailureCode } from "../../src/domain/failure.ts";
import type { InboxDelivery } from "../../src/domain/inbox.ts";
import type { Replay, ReplayKind } from "../../src/domain/replay.ts";
import type { Tenant } from "../../src/domain/tenant.ts";
import type { ListedWebhook } from "../../src/domain/webhook-list.ts";
import { newId, newTenantId } from "../../src/lib/id.ts";
import type { Settlement } from "../../src/store/deliveries.ts";
import type { InboxRange } from "../../src/store/inbox.ts";
import type { AcceptRequest, NewEvent, NewReplay, NewTenant, Store } from "../../src/store/store.ts";
import { createFakeClock } from "./fake-clock.ts";
import { readAll } from "./read-all.ts";
import type { StoreBackend } from "./store-backend.ts";

export const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

export const utf8 = (text: Uint8Array) => new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(text);

/** A list entry with its label as text. */
const readLabel = <Entry extends { replayGroupId: JsonText | null }>({ replayGroupId, ...entry }: Entry) => ({
  ...entry,
  replayGroupId: replayGroupId === null ? null : String(JSON.parse(utf8(replayGroupId))),
});

const randomBytes = (length: number) => crypto.getRandomValues(new Uint8Array(length));

export const newApiKeyRow = (hash = randomBytes(32)) => ({ id: newId("key"), hash, sealed: randomBytes(60) });
export const newSigningKeyRow = () => ({ id: newId("sk"), publicKey: randomBytes(32), sealedSeed: randomBytes(60) });
/** An act by the account itself. */
export const newAct = (given: Partial<Act>): Act => ({
  ...{ action: "login", actor: "account", via: null, address: "192.0.2.1" },
  ...given,
});

/** Webhooks given by URL alone, or with settings. */
export const newWebhooks = (...wanted: (string | Partial<ListedWebhook>)[]): ListedWebhook[] =>
  wanted.map((one) => ({ id: newId("wh"), url: "", name: "", ...(typeof one === "string" ? { url: one } : one) }));

/** A tenant in which only the interesting fields are given; `urls` are its webhooks. */
export function newTenant({ urls = [], ...given }: Partial<NewTenant> & { urls?: string[] } = {}): NewTenant {
  const tier = given.tier ?? "enterprise";
  return {
    id: newTenantId(),
    name: "Test",
    email: "test@example.com",
    loginEmail: null,
    tier,
    enforcedTier: tier,
    passwordHash: "hash",
    apiKey: newApiKeyRow(),
    signingKey: newSigningKeyRow(),
    sealedSigningSecret: randomBytes(60),
    webhooks: newWebhooks(...urls),
    ...given,
  };
}

export const newInboxDelivery = (given: Partial<InboxDelivery> = {}): InboxDelivery => ({
  id: newId("ibx"),
  receivedAt: 1_000,
  eventId: "evt_1",
  headers: { Host: "relay.example" },
  body: bytes("{}"),
  answeredStatus: 204,
  isTest: false,
  ...given,
});

export const newReplay = (kind: ReplayKind, given: Partial<NewReplay> = {}): NewReplay => ({
  id: newId("rpl"),
  kind,
  label: `the ${kind} replay`,
  ...given,
});

export type Outcome = "delivered" | "failed" | "retry";

/** How an attempt failed, and how long it took. */
export interface GivenFailure {
  /** @default 12 */
  readonly durationMs?: number;
  readonly code?: FailureCode;
  /** The status of an answer. @default 503 */
  readonly status?: number;
  readonly answer?: string;
}

/** The settlement of an attempt that began now; a retry comes after a minute. */
export function settlementOf(
  delivery: DueDelivery,
  outcome: Outcome,
  now: number,
  { code = "http_status", status = 503, answer = "answer", durationMs = 12 }: GivenFailure = {},
): Settlement {
  const isDelivered = outcome === "delivered";
  const isAnswered = isDelivered || code === "http_status";
  return {
    delivery,
    attempt: {
      startedAt: now,
      durationMs,
      statusCode: isDelivered ? 204 : isAnswered ? status : null,
      error: isDelivered ? null : `${isAnswered ? `HTTP ${status} from` : `${code} of`} ${delivery.url}`,
      errorCode: isDelivered ? null : code,
      responseBody: isAnswered ? bytes(answer) : null,
      answerHead: isAnswered && !isDelivered ? answerHead : null,
    },
    next: outcome === "retry" ? { kind: outcome, at: now + 60_000 } : { kind: outcome },
  };
}

/** The head of every answer that did not acknowledge. */
export const answerHead: AnswerHead = {
  address: "192.0.2.7",
  headers: [["Server", 'a "quoted", \\ {one}']],
  isCut: false,
};

/** The kind or code of the `DomainError` with which a promise is rejected; "fulfilled" when it is not. */
export async function refusalOf(promise: Promise<unknown>): Promise<string> {
  try {
    await promise;
    return "fulfilled";
  } catch (error) {
    if (error instanceof DomainError) return `${error.kind} ${error.code}`;
    throw error;
  }
}

/** The id of the account's latest API key, which accepting events requires; empty when it has no key. */
export const latestKey = async (store: Pick<Store, "apiKeys">, tenantKey: number): Promise<string> =>
  (await store.apiKeys(tenantKey))[0]?.id ?? "";

/** Events for which a test gives only payloads have no type. */
type Given = Partial<AcceptRequest> & { readonly payloads?: readonly Uint8Array[] };

export const untyped = (payload: Uint8Array): NewEvent => ({ payload, type: null });

/** A store under test, with methods shortened to what a test has to say. */
export async function createWorld(backend: StoreBackend) {
  const clock = createFakeClock();
  const growth = { isAllowed: true };
  const opened = await backend.open({ clock, mayGrow: () => growth.isAllowed });
  let { store, sandboxBooks, limits, jobs, billingLock } = opened;
  const firstKeys = new Map<number, string>();

  const world = {
    clock,
    growth,
    count: opened.count,
    edit: opened.edit,
    get store() {
      return store;
    },
    get sandboxBooks() {
      return sandboxBooks;
    },
    get limits() {
      return limits;
    },
    get jobs() {
      return jobs;
    },
    get billingLock() {
      return billingLock;
    },
    /** Closes the store and opens it again, as a restart does. */
    async reopen() {
      await store.close();
      ({ store, sandboxBooks, limits, jobs, billingLock } = await opened.reopen());
    },
    async end() {
      await store.close();
      await opened.remove();
    },

    async tenant(given?: Parameters<typeof newTenant>[0]) {
      const made = newTenant(given);
      const tenant = await store.createTenant(made, clock.now());
      firstKeys.set(tenant.key, made.apiKey.id);
      return tenant;
    },
    setUrls: (tenant: Tenant, ...webhooks: (string | Partial<ListedWebhook>)[]) =>
      store.replaceWebhooks(tenant.key, { webhooks: newWebhooks(...webhooks), limit: 10 }, clock.now()),
    /** Accepts events and takes ownership of their deliveries. */
    acceptOwned: (tenant: Tenant, given: Given = {}) =>
      world.accept(tenant, { roomFor: () => Number.POSITIVE_INFINITY, ...given }),
    /** Accepts events whose deliveries are nobody's, with the key that the account was made with. */
    accept({ key: tenantKey }: Tenant, { payloads = [bytes("{}")], ...given }: Given = {}) {
      const apiKeyId = firstKeys.get(tenantKey) ?? "";
      return store.acceptEvents({ tenantKey, apiKeyId, events: payloads.map(untyped), ...given });
    },
    /** Many events, whose payload nobody looks at. */
    async acceptMany(tenant: Tenant, count: number) {
      const eventIds: string[] = [];
      for (let left = count; left > 0; left -= 1000) {
        const payloads = Array.from({ length: Math.min(left, 1000) }, () => bytes("{}"));
        eventIds.push(...(await world.accept(tenant, { payloads })).eventIds);
      }
      return eventIds;
    },
    /** The only delivery of an event, which is owned. */
    async delivery(tenant: Tenant): Promise<DueDelivery> {
      const [delivery] = (await world.acceptOwned(tenant)).deliveries;
      if (!delivery) throw new Error("The tenant has no webhook");
      return delivery;
    },
    settle: (delivery: DueDelivery, outcome: Outcome, failure?: GivenFailure) =>
      store.settle(settlementOf(delivery, outcome, clock.now(), failure)),
    /** Accepts an event and ends the run of each of its deliveries. */
    async event(tenant: Tenant, ...outcomes: Outcome[]) {
      const { eventIds, deliveries } = await world.acceptOwned(tenant);
      for (const [i, outcome] of outcomes.entries()) {
        const delivery = deliveries[i];
        if (delivery) await world.settle(delivery, outcome);
      }
      await store.release(deliveries.slice(outcomes.length));
      return eventIds[0] ?? "";
    },
    /** Claims all due deliveries of the tenant. */
    async claim(tenant: Tenant): Promise<DueDelivery[]> {
      const lanes = (await store.discover()).filter(({ tenantKey }) => tenantKey === tenant.key);
      const pages = await Promise.all(lanes.map((lane) => store.claim(lane, clock.now(), 10_000)));
      return pages.flatMap(({ due }) => due);
    },
    /** Everything that could be claimed now. */
    async due(tenant: Tenant): Promise<DueDelivery[]> {
      const due = await world.claim(tenant);
      await store.release(due);
      return due;
    },
    async page(tenant: Tenant, given: Partial<Parameters<Store["page"]>[0]> = {}) {
      const { records, ...rest } = await store.page({ tenantKey: tenant.key, page: 0, size: 1000, ...given });
      return { ...rest, records: (await readAll(records)).map(readLabel) };
    },
    async recordsOf(tenantKey: number, eventId: string) {
      const records = await store.records(tenantKey, eventId);
      return records && (await readAll(records)).map(readLabel);
    },
    async attemptsOf(tenantKey: number, eventId: string, range = { offset: 0, limit: 1_000 }) {
      const found = await store.attempts(tenantKey, eventId, range);
      return found && readAll(found.attempts);
    },
    async replaysOf(tenantKey: number, range: { offset: number; limit: number }) {
      const { replays, total } = await store.replays(tenantKey, range);
      return { replays: (await readAll(replays)).map(readLabel), total };
    },
    async inboxOf(tenantKey: number, range: InboxRange) {
      const { deliveries, total } = await store.inboxDeliveries(tenantKey, range);
      const all = await readAll(deliveries);
      return { deliveries: all.map(({ body, ...rest }) => ({ ...rest, body: bytes(JSON.parse(utf8(body))) })), total };
    },
    /** "STATE url" of each record of an event. */
    async records(tenant: Tenant, eventId: string) {
      const records = (await world.recordsOf(tenant.key, eventId)) ?? [];
      return records.map(({ state, targetWebhook }) => `${state} ${targetWebhook}`.trim());
    },
    /**
     * The totals as the store counts them (SKIPPED only when there are any), after checking that a recount (of up to
     * 1,000 records) gives the same.
     */
    async totals(tenant: Tenant): Promise<Partial<Record<DeliveryState, number>>> {
      const { records, total } = await world.page(tenant);
      const states = deliveryStates;
      const counted = await Promise.all(
        states.map(async (state) => (await world.page(tenant, { state, size: 1 })).total),
      );
      const recounted = states.map((state) => records.filter((record) => record.state === state).length);
      if (counted.join() !== recounted.join() || total !== records.length) {
        throw new Error(`The counters say ${counted} of ${total}, the records are ${recounted} of ${records.length}`);
      }
      const [PENDING = 0, DELIVERED = 0, FAILED = 0, SKIPPED = 0] = counted;
      return { PENDING, DELIVERED, FAILED, ...(SKIPPED > 0 && { SKIPPED }) };
    },

    startReplay: (tenant: Tenant, kind: ReplayKind, given: Partial<NewReplay> = {}) =>
      store.startReplay(tenant.key, newReplay(kind, given), clock.now(), { unfinished: 11, perDay: null }),
    replayEvent: (tenant: Tenant, eventId: string) =>
      store.replayEvent(tenant.key, newReplay("single", { eventId }), clock.now()),
    /** Queues everything waiting to be replayed; returns the replays in the order of their batches. */
    async queueAll(limit = 100): Promise<Replay[]> {
      const turns: Replay[] = [];
      for (;;) {
        const batch = await store.queueReplayBatch(limit, clock.now());
        if (!batch) return turns;
        turns.push(batch.replay);
      }
    },
    async replay(tenant: Tenant, id: string): Promise<Replay> {
      const found = await store.findReplay(tenant.key, id);
      if (!found) throw new Error(`There is no replay ${id}`);
      return found;
    },
  };
  return world;
}

export type World = Awaited<ReturnType<typeof createWorld>>;
