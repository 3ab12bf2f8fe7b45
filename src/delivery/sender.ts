import type { DueDelivery } from "../domain/delivery.ts";
import type { OwnHeaders } from "../domain/webhook-headers.ts";
import type { Interruption } from "../lib/interruption.ts";
import type { Outcome, Transport } from "./network/transport.ts";
import { createRecentSignatures } from "./recent-signatures.ts";
import { buildRequest } from "./request.ts";
import type { SignerMaterial } from "./signature.ts";

/** One attempt as it is ordered: what to deliver, what to sign it with, and the time that the signatures hold. */
export interface SendOrder {
  readonly delivery: DueDelivery;
  readonly material: SignerMaterial;
  /** Of the tenant's own. */
  readonly headers: OwnHeaders;
  /** Milliseconds since the Unix epoch. */
  readonly now: number;
}

/** Signs and sends: all of an attempt that needs no database. */
export interface Sender {
  /**
   * Makes one attempt. A failure is a value, never a rejection; it rejects only for a request that cannot be written, which
   * is a fault of the caller. Any number may be in flight.
   */
  send(order: SendOrder, signal?: Interruption): Promise<Outcome>;
  /** Ends every connection at once; attempts in flight, and later ones, come back as `aborted`. */
  close(): void;
}

/** On this thread, by the clock and the connections of `transport`. `sender-thread.ts` does the same on another. */
export function createSender(transport: Transport): Sender {
  const sign = createRecentSignatures();
  return {
    send: async ({ delivery, material, headers, now }, signal) =>
      transport.send(buildRequest(delivery, material, now, headers, sign), signal),
    close: () => transport.close(),
  };
}
