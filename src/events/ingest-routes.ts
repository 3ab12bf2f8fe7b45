import { createHash } from "node:crypto";
import { DomainError, invalidField } from "../domain/errors.ts";
import type { Tenant } from "../domain/tenant.ts";
import { readTrace } from "../domain/trace-context.ts";
import { accepted, type Caller, type ErasedEndpoint, endpoint, type Reply } from "../http/endpoint.ts";
import type { AcceptRequest, NewEvent } from "../store/store.ts";
import type { AcceptConditions, AnnounceRefused } from "./ingest.ts";
import * as model from "./model.ts";
import { sliceBatch, sliceEvent } from "./payload.ts";

/** Rules, section 6: all events of a batch together. */
export const maxBatchBytes = 5 * 2 ** 20;

/** 1 to 255 printable ASCII characters (rules, section 6). */
const idempotencyKeyPattern = /^[\x20-\x7e]{1,255}$/;

export interface IngestRouteDeps {
  ingest(tenant: Tenant, events: readonly NewEvent[], conditions: AcceptConditions): Promise<readonly string[]>;
  announceRefused: AnnounceRefused;
  maxBodyBytes: number;
}

export function ingestRoutes({ ingest, announceRefused, maxBodyBytes }: IngestRouteDeps): ErasedEndpoint[] {
  async function take(
    { tenant, apiKeyId, body, raw }: { tenant: Tenant; apiKeyId: string; body: Uint8Array; raw: Request },
    path: string,
    slice: (body: Uint8Array) => readonly NewEvent[],
    answer: (eventIds: readonly string[]) => unknown,
  ): Promise<Reply> {
    let events = 1;
    try {
      const sliced = slice(body);
      events = sliced.length;
      refuseTooLarge(sliced, body);
      return accepted(answer(await ingest(tenant, sliced, conditionsOf(apiKeyId, raw, path, body))));
    } catch (error) {
      if (error instanceof DomainError) announceRefused(tenant.key, error, events);
      throw error;
    }
  }
  /** @throws invalid when an entry has more than an event may have alone; a body that has not needs no look at each */
  function refuseTooLarge(events: readonly NewEvent[], body: Uint8Array): void {
    if (body.length <= maxBodyBytes) return;
    const tooLarge = events.findIndex(({ payload }) => payload.length > maxBodyBytes);
    if (tooLarge < 0) return;
    throw invalidField(`events[${tooLarge}].payload`, `must be at most ${maxBodyBytes} bytes`);
  }

  const onUnread = ({ tenant }: Caller<"api_key">, error: DomainError) => announceRefused(tenant.key, error, 1);

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
        onUnread,
        responses: model.ingestResponses,
      },
      (request) => take(request, "/v1/ingest", sliceSingle, answerSingle),
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
        onUnread,
        responses: model.batchResponses,
      },
      (request) => take(request, "/v1/ingest/batch", sliceBatch, answerBatch),
    ),
  ];
}

const sliceSingle = (body: Uint8Array) => [sliceEvent(body)];
const answerSingle = ([eventId]: readonly string[]) => ({ status: "accepted", eventId });
const answerBatch = (eventIds: readonly string[]) => ({ status: "accepted", eventIds });

/** Until the commit, a client can disconnect, or break its request off by what it sends after it; then it gets no 202. */
function conditionsOf(apiKeyId: string, request: Request, path: string, body: Uint8Array): AcceptConditions {
  const { headers } = request;
  const idempotency = idempotencyOf(headers, path, body);
  const trace = readTrace(headers.get("traceparent"), headers.get("tracestate"));
  return { apiKeyId, trace, idempotency, isAbandoned: () => request.signal.aborted };
}

/** The key of a request that may be repeated, and what identifies a repetition: its path and its bytes. */
function idempotencyOf(headers: Headers, path: string, body: Uint8Array): AcceptRequest["idempotency"] {
  const key = headers.get("idempotency-key");
  if (key === null) return undefined;
  if (!idempotencyKeyPattern.test(key)) {
    throw invalidField("Idempotency-Key", "must be 1 to 255 printable ASCII characters", "invalid_idempotency_key");
  }
  return { key, fingerprint: createHash("sha256").update(path).update("\n").update(body).digest() };
}
