import type { Dispatcher } from "../delivery/dispatcher.ts";
import type { Tenant } from "../domain.ts";
import type { AcceptedEvents, AcceptRequest, Store } from "../store/store.ts";

/** Told of accepted events once they are on disk. */
export type AnnounceAccepted = (tenant: Tenant, accepted: AcceptedEvents) => void;

export interface IngestDeps {
  store: Store;
  dispatcher: Pick<Dispatcher, "offer">;
  announce: AnnounceAccepted;
}

/**
 * Accepts events: stores them, hands their deliveries over, and returns their ids. It returns after the commit that holds
 * the events and all their delivery rows is on disk (decisions, section 6).
 */
export function createIngest({ store, dispatcher, announce }: IngestDeps) {
  return async function ingest(
    tenant: Tenant,
    payloads: readonly Uint8Array[],
    idempotency?: AcceptRequest["idempotency"],
  ): Promise<readonly string[]> {
    const accepted = await store.acceptEvents({ tenantKey: tenant.key, payloads, ...(idempotency && { idempotency }) });
    if (accepted.repeated) return accepted.eventIds;
    dispatcher.offer(accepted.deliveries);
    announce(tenant, accepted);
    return accepted.eventIds;
  };
}
