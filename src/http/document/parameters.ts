import type { ErasedEndpoint, Schema } from "../endpoint.ts";
import { type JsonSchema, jsonSchemaOf } from "./json-schema.ts";

export interface Parameter {
  name: string;
  in: "path" | "query" | "header";
  required: boolean;
  description?: string;
  schema: JsonSchema;
}

export function parametersOf(endpoint: ErasedEndpoint): Parameter[] {
  return [
    ...parametersIn("path", endpoint.params),
    ...parametersIn("query", endpoint.query),
    ...(endpoint.access === "api_key" && endpoint.method === "POST" ? ofIngestions : []),
    ...(isStream(endpoint) ? [lastEventId] : []),
    ...(endpoint.responses[412] ? [ifMatch] : []),
  ];
}

export function parametersIn(place: "path" | "query", schema: Schema | undefined): Parameter[] {
  const { properties = {}, required = [] } = schema === undefined ? {} : jsonSchemaOf(schema);
  return Object.entries(properties).map(([name, { description, ...rest }]) => ({
    name,
    in: place,
    required: place === "path" || required.includes(name),
    ...(description !== undefined && { description }),
    schema: rest,
  }));
}

/** Taken by every ingestion endpoint (rules, section 6). */
const idempotencyKey: Parameter = {
  name: "Idempotency-Key",
  in: "header",
  required: false,
  description:
    "Makes retries safe for 24 hours: the same key with the same path and bytes returns the same 202; with other bytes, a 422.",
  schema: { type: "string", minLength: 1, maxLength: 255, pattern: "^[\\x20-\\x7e]*$" },
};

/** Taken by every ingestion endpoint, too (rules, section 6). */
const traceContext: readonly Parameter[] = ["traceparent", "tracestate"].map((name) => ({
  name,
  in: "header",
  required: false,
  description: "W3C Trace Context: kept with the events and sent with their deliveries. Ignored if it is not valid.",
  schema: { type: "string" },
}));

const ofIngestions = [idempotencyKey, ...traceContext];

/** Taken by an event stream (HTML standard, "The Last-Event-ID header"). */
const lastEventId: Parameter = {
  name: "Last-Event-ID",
  in: "header",
  required: false,
  description: "The id of the last message received; the stream resumes after it.",
  schema: { type: "string" },
};

/** Taken where what is replaced may have changed since it was read (RFC 9110, section 13.1.1). */
const ifMatch: Parameter = {
  name: "If-Match",
  in: "header",
  required: false,
  description: "The `ETag` of what was read: if it has changed since, nothing is replaced, and the answer is 412.",
  schema: { type: "string" },
};

const isStream = ({ responses }: ErasedEndpoint) => responses[200]?.contentType === "text/event-stream";
