import { maxBatchBytes } from "../../events/ingest-routes.ts";

/** Rules, section 6. */
export const mostInBatch = 1_000;

/** What is sent with every event, beside its payload; null: nothing. */
export interface Beside {
  readonly eventType: string | null;
  readonly orderingKey: string | null;
}

/** Request bodies around payloads that are copied byte for byte, never parsed and re-serialised. */
export interface Bodies {
  /** The body of `POST /v1/ingest`. */
  event(payload: Uint8Array): Uint8Array<ArrayBuffer>;
  /** The body of `POST /v1/ingest/batch`. */
  batch(payloads: readonly Uint8Array[]): Uint8Array<ArrayBuffer>;
  /** Size in bytes of a batch body with this many events and payload bytes. */
  batchBytes(events: number, payloadBytes: number): number;
  /** Length in bytes of the longest payload that a batch can hold. */
  readonly longestPayload: number;
}

const before = Buffer.from('{"payload":');
const beforeAll = Buffer.from('{"events":[');
const between = Buffer.from(",");
const afterAll = Buffer.from("]}");

export function createBodies({ eventType, orderingKey }: Beside): Bodies {
  const after = Buffer.from(`${field("event_type", eventType)}${field("ordering_key", orderingKey)}}`);
  const batchBytes = (events: number, payloadBytes: number) =>
    beforeAll.length + payloadBytes + events * (before.length + after.length + between.length) + afterAll.length;

  return {
    event: (payload) => join([before, payload, after]),
    batch(payloads) {
      const parts = payloads.flatMap((payload, i) =>
        i === 0 ? [before, payload, after] : [between, before, payload, after],
      );
      return join([beforeAll, ...parts, afterAll]);
    },
    batchBytes,
    longestPayload: maxBatchBytes - batchBytes(1, 0),
  };
}

const field = (name: string, value: string | null): string =>
  value === null ? "" : `,"${name}":${JSON.stringify(value)}`;

function join(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
