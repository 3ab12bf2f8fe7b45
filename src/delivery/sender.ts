import type { DueDelivery } from "../domain/delivery.ts";
import type { OwnHeaders } from "../domain/webhook-headers.ts";
import type { Interruption } from "../lib/interruption.ts";
import type { Outcome, Transport } from "./network/transport.ts";
import { createRecentSignatures } from "./recent-signatures.ts";
import { buildRequest } from "./request.ts";
import type { SignerMaterial } from "./signature.ts";

/** An order for one attempt: what to deliver, what to sign it with, and the time that the signatures contain. */
export interface SendOrder {
  readonly delivery: DueDelivery;
  readonly material: SignerMaterial;
  /** The tenant's own. */
  readonly headers: OwnHeaders;
  /** Milliseconds since the Unix epoch. */
  readonly now: number;
  /** Its event has just been accepted, and its webhook answers. @default false */
  readonly isFresh?: boolean;
}

/** Signs and sends: the part of an attempt that needs no database. */
export interface Sender {
  /**
   * Makes one attempt. A failed attempt is a value, never a rejection; this rejects only for a request that cannot be
   * written, which is the caller's fault. Any number may be in flight.
   */
  send(order: SendOrder, signal?: Interruption): Promise<Outcome>;
  /** Ends every connection immediately; attempts in flight, and later ones, come back as `interrupted`. */
  close(): void;
}

/** A sender on this thread, with the clock and the connections of `transport`. `sender-thread.ts` does the same on another. */
export function createSender(transport: Transport): Sender {
  const sign = createRecentSignatures();
  return {
    send: async ({ delivery, material, headers, now }, signal) =>
      transport.send(buildRequest(delivery, material, now, headers, sign), signal),
    close: () => transport.close(),
  };
}
