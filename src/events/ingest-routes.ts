import { createHash } from "node:crypto";
import { invalidField } from "../domain/errors.ts";
import type { Tenant } from "../domain/tenant.ts";
import { readTrace } from "../domain/trace-context.ts";
import { accepted, type ErasedEndpoint, endpoint } from "../http/endpoint.ts";
import type { AcceptRequest, NewEvent } from "../store/store.ts";
import type { AcceptConditions } from "./ingest.ts";
import * as model from "./model.ts";
import { sliceBatch, sliceEvent } from "./payload.ts";

/** Rules, section 6: all events of a batch together. */
export const maxBatchBytes = 5 * 2 ** 20;

/** 1 to 255 printable ASCII characters (rules, section 6). */
const idempotencyKeyPattern = /^[\x20-\x7e]{1,255}$/;

export interface IngestRouteDeps {
  ingest(tenant: Tenant, events: readonly NewEvent[], conditions: AcceptConditions): Promise<readonly string[]>;
  maxBodyBytes: number;
}

export function ingestRoutes({ ingest, maxBodyBytes }: IngestRouteDeps): ErasedEndpoint[] {
  return [
    endpoint(
      {
        method: "POST",
        path: "/v1/ingest",
        tag: "Ingestion",
        summary: "Accept an event",
        description:
          "The payload is stored and delivered byte for byte as sent. The response is sent once the event and all its deliveries are on disk.",
        access: "api_key",
        body: "bytes",
        bodyDocument: model.IngestBody,
        bodyExample: model.ingestBodyExample,
        maxBodyBytes,
        responses: model.ingestResponses,
      },
      async ({ tenant, apiKeyId, body, raw }) => {
        const event = sliceEvent(body);
        const [eventId] = await ingest(tenant, [event], conditionsOf(apiKeyId, raw, "/v1/ingest", body));
        return accepted({ status: "accepted", eventId });
      },
    ),
    endpoint(
      {
        method: "POST",
        path: "/v1/ingest/batch",
        tag: "Ingestion",
        summary: "Accept up to 1,000 events, all or none",
        access: "api_key",
        body: "bytes",
        bodyDocument: model.BatchBody,
        bodyExample: model.batchBodyExample,
        maxBodyBytes: maxBatchBytes,
        responses: model.batchResponses,
      },
      async ({ tenant, apiKeyId, body, raw }) => {
        const events = sliceBatch(body);
        const eventIds = await ingest(tenant, events, conditionsOf(apiKeyId, raw, "/v1/ingest/batch", body));
        return accepted({ status: "accepted", eventIds });
      },
    ),
  ];
}

/** Until the commit a client can go, or break its request off by what it sends after it: then it gets no 202. */
function conditionsOf(apiKeyId: string, request: Request, path: string, body: Uint8Array): AcceptConditions {
  const { headers } = request;
  const idempotency = idempotencyOf(headers, path, body);
  const trace = readTrace(headers.get("traceparent"), headers.get("tracestate"));
  return { apiKeyId, trace, ...(idempotency && { idempotency }), isAbandoned: () => request.signal.aborted };
}

/** The key of a request that may be repeated, and what makes the repetition the same: its path and its bytes. */
function idempotencyOf(headers: Headers, path: string, body: Uint8Array): AcceptRequest["idempotency"] {
  const key = headers.get("idempotency-key");
  if (key === null) return undefined;
  if (!idempotencyKeyPattern.test(key)) {
    throw invalidField("Idempotency-Key", "must be 1 to 255 printable ASCII characters", "invalid_idempotency_key");
  }
  return { key, fingerprint: createHash("sha256").update(path).update("\n").update(body).digest() };
}
