import type { Dispatcher } from "../delivery/queue/dispatcher.ts";
import type { DomainError } from "../domain/errors.ts";
import type { Tenant } from "../domain/tenant.ts";
import { createKeyedLock } from "../lib/keyed-lock.ts";
import type { AcceptedEvents, AcceptRequest, NewEvent, Store } from "../store/store.ts";
import type { Backpressure } from "./backpressure.ts";

/** Called with accepted events once they are on disk. */
export type AnnounceAccepted = (tenant: Tenant, accepted: AcceptedEvents) => void;

/** Called when events were not accepted, with the reason. @param events one, if the request could not be read */
export type AnnounceRefused = (tenantKey: number, error: DomainError, events: number) => void;

/** What has to hold besides the account's own standing. */
export type AcceptConditions = Pick<AcceptRequest, "apiKeyId" | "trace" | "idempotency" | "isAbandoned">;

export interface IngestDeps {
  store: Pick<Store, "acceptEvents">;
  dispatcher: Pick<Dispatcher, "roomFor" | "offer" | "wake">;
  announce: AnnounceAccepted;
  backpressure: Pick<Backpressure, "begin" | "end">;
}

/**
 * Accepts events: stores them, hands over those of their deliveries that fit in memory, and returns their ids. It returns
 * once the commit with the events and all their delivery rows is on disk (rules, section 6).
 */
export function createIngest({ store, dispatcher, announce, backpressure }: IngestDeps) {
  /** Batches of one account run one after the other, so that another account's batch waits for one of them, not for all. */
  const batches = createKeyedLock<number>();

  async function accept(tenant: Tenant, request: AcceptRequest): Promise<readonly string[]> {
    const { tenantKey, events } = request;
    const turn = backpressure.begin(tenantKey, events.length);
    if (turn !== null) await turn;
    let accepted: AcceptedEvents;
    try {
      accepted = await store.acceptEvents(request);
    } finally {
      backpressure.end(events.length);
    }
    if (accepted.repeated) return accepted.eventIds;
    dispatcher.offer(accepted.deliveries);
    if (accepted.unowned.length > 0) dispatcher.wake(accepted.unowned);
    announce(tenant, accepted);
    return accepted.eventIds;
  }

  /** A separate function: one that may create a closure makes room for it on every call, even for single events. */
  const acceptBatch = (tenant: Tenant, request: AcceptRequest) =>
    batches.run(tenant.key, () => accept(tenant, request));

  return function ingest(
    tenant: Tenant,
    events: readonly NewEvent[],
    conditions: AcceptConditions,
  ): Promise<readonly string[]> {
    const request = { tenantKey: tenant.key, events, roomFor: dispatcher.roomFor, ...conditions };
    return events.length > 1 ? acceptBatch(tenant, request) : accept(tenant, request);
  };
}
