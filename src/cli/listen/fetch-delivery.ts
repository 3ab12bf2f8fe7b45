import { refusalOf, textIn } from "../client/answer.ts";
import type { Call } from "../client/call.ts";
import type { ServerClient } from "../client/server.ts";
import type { Delivery } from "./local-address.ts";

/** An event that cannot be forwarded. */
export interface Undeliverable {
  /** Why, in words. */
  readonly undeliverable: string;
}

/**
 * The request that a webhook would receive for an event, signed anew.
 * @throws StartupError when it is refused for a reason that is not this event's
 */
export type FetchDelivery = (eventId: string) => Promise<Delivery | Undeliverable>;

export interface FetchDeliveryDeps {
  server: Pick<ServerClient, "url">;
  call: Call;
}

/** By code: the account's other events can still be forwarded. */
const reasons = new Map([
  ["payload_erased", "its payload was erased"],
  ["storage_damaged", "it is damaged in storage"],
]);

export function createFetchDelivery({ server, call }: FetchDeliveryDeps): FetchDelivery {
  return async (eventId) => {
    const reply = await call("GET", `/v1/events/${eventId}/delivery`);
    if (reply.status === 200) return reply.json as Delivery;
    if (reply.status === 404) return { undeliverable: "the event no longer exists" };
    const undeliverable = reasons.get(textIn(reply.json, "code") ?? "");
    if (undeliverable === undefined) throw refusalOf(server, reply);
    return { undeliverable };
  };
}
