import type { AnswerHead } from "../domain/delivery.ts";
import type { NoResponseCause } from "../domain/failure.ts";
import type { TraceContext } from "../domain/trace-context.ts";
import type { OwnHeaders } from "../domain/webhook-headers.ts";
import type { AddressPolicyOptions } from "./network/address.ts";
import type { Listener } from "./network/own-listeners.ts";

/**
 * What `sender-thread.ts` and `sender-worker.ts` say to each other. Many attempts share a message, and their details go
 * as JSON: 15 orders and their answers take 40 µs of each thread that way, and 70 as objects that the runtime clones.
 */
export type SenderMessage =
  | { kind: "open"; settings: SenderSettings }
  /** Signers that the orders to come name for the first time. */
  | { kind: "signers"; signers: readonly PackedSigner[] }
  | SendBatch
  /** Numbers of signers that no later order will name. */
  | { kind: "forget"; signers: readonly number[] }
  | { kind: "abort"; id: number }
  | { kind: "avoid"; ownListeners: readonly Listener[] }
  | { kind: "close" };

/** Plain data: functions and clocks stay on their side. */
export interface SenderSettings {
  policy: AddressPolicyOptions;
  /** @default the system's */
  dnsServers?: readonly string[];
  /** Certificate authorities to trust in addition to the usual ones, PEM. */
  extraCa?: string;
  /** Holds a password. @default none */
  proxyUrl?: string;
}

export interface SendBatch {
  kind: "send";
  /** A list of `PackedOrder`, as JSON. */
  orders: string;
  /** The payloads of all orders, one after the other; handed over, not copied. */
  payloads: ArrayBuffer;
}

export interface PackedSigner {
  number: number;
  keyId: string;
  /** PKCS #8, DER. */
  privateKey: Uint8Array;
  secrets: readonly Uint8Array[];
}

/** Fields that most orders lack are left out. */
export interface PackedOrder {
  id: number;
  url: string;
  eventId: string;
  tenantId: string;
  eventSeq: number;
  trace: TraceContext | undefined;
  replayGroupId: string | undefined;
  /** The tenant's own. */
  headers: OwnHeaders | undefined;
  /** Where its payload ends in `payloads`; it begins where the one before it ended. */
  payloadEnd: number;
  /** The number of a `PackedSigner`. */
  signer: number;
  now: number;
}

/** What the worker has to report, gathered over one turn of its event loop. Sent as JSON. */
export interface SenderNews {
  answers: readonly PackedAnswer[];
  /** Bodies that had not ended when their heads were reported. */
  bodies: readonly { id: number; body: PackedBytes }[];
  /** Requests that went out on a new connection, and on a kept one. */
  connections: { fresh: number; kept: number };
  /**
   * How long the thread was busy since the news before last: a request sent in the turn that ended with that news may
   * have been answered since then, and its answer read only in this turn.
   */
  busyMs: number;
}

export type PackedAnswer =
  | { id: number; kind: "no-response"; cause: NoResponseCause; detail: string | undefined; durationMs: number }
  | {
      id: number;
      kind: "responded";
      status: number;
      retryAfter: string | undefined;
      head: AnswerHead | null;
      durationMs: number;
      body: PackedBytes;
      bodyEnded: boolean;
    }
  | { id: number; kind: "failed"; message: string };

/** One character per byte (latin1): most bodies are short text, and many are empty. */
export type PackedBytes = string;
