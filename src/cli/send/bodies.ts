import { maxBatchBytes } from "../../events/ingest-routes.ts";

/** Request bodies around payloads that are copied byte for byte, never parsed and re-serialised. */

const before = Buffer.from('{"payload":');
const after = Buffer.from("}");
const beforeAll = Buffer.from('{"events":[');
const between = Buffer.from(",");
const afterAll = Buffer.from("]}");

/** Rules, section 6. */
export const mostInBatch = 1_000;

/** Size in bytes of a batch body with this many events and payload bytes. */
export const batchBytes = (events: number, payloadBytes: number): number =>
  beforeAll.length + payloadBytes + events * (before.length + after.length + between.length) + afterAll.length;

/** The longest payload that a batch can hold. */
export const longestPayload = maxBatchBytes - batchBytes(1, 0);

/** The body of `POST /v1/ingest`. */
export const eventBody = (payload: Uint8Array): Uint8Array<ArrayBuffer> => join([before, payload, after]);

/** The body of `POST /v1/ingest/batch`. */
export function batchBody(payloads: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const parts = payloads.flatMap((payload, i) =>
    i === 0 ? [before, payload, after] : [between, before, payload, after],
  );
  return join([beforeAll, ...parts, afterAll]);
}

function join(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
