import * as v from "valibot";
import { idempotencyConflict } from "../domain/acceptance.ts";
import { deliveryStates } from "../domain/delivery.ts";
import { notFound } from "../domain/errors.ts";
import { maxEventTypeLength } from "../domain/event-types.ts";
import { type FailureCode, failureCodes, statusRange } from "../domain/failure.ts";
import { maxOrderingKeyLength } from "../domain/order.ts";
import { cardNotVerified, suspendedByOperator } from "../domain/standing.ts";
import type { ResponseDescription } from "../http/endpoint.ts";
import { failure, invalidRequest, refusal } from "../http/error-models.ts";
import { closedQuery, jsonObject, queryInteger, text } from "../http/validation.ts";
import { parseDuration } from "../lib/duration.ts";
import { parseIso } from "../lib/iso-time.ts";
import { keptAttempts } from "../store/deliveries.ts";
import { payloadStart } from "../store/store.ts";
import { attemptBody, errorCode } from "./attempt-model.ts";

/** Bodies, queries and responses of ingestion and of the events endpoints. */

const exampleEventId = "evt_01jc8x2m4e7n9q3s5v7y9a1c3e";
const examplePayload = { event_type: "order.created", order_id: 1042 };

// ---------------------------------------------------------------- ingestion

const payload = v.pipe(
  v.record(v.string(), v.unknown()),
  v.description("A JSON object, stored and delivered byte for byte as sent."),
);

/** An event, wherever one is given. Only for the document; `sliceEvent` checks the bytes themselves. */
export const givenEvent = {
  payload,
  event_type: v.optional(
    v.pipe(
      v.nullable(v.pipe(v.string(), v.minLength(1), v.maxLength(maxEventTypeLength))),
      v.description(
        "What filters and the `event_types` of webhooks go by. By default, the payload's own `event_type`, or else its `type`; if neither is a valid type, the event has none.",
      ),
    ),
  ),
};

/** Only for the document, too; `sliceBatch` checks the bytes of a batch. */
export const IngestBody = v.pipe(
  jsonObject({
    ...givenEvent,
    ordering_key: v.optional(
      v.pipe(
        v.nullable(v.pipe(v.string(), v.minLength(1), v.maxLength(maxOrderingKeyLength))),
        v.description(
          "`ordered` webhooks get events with the same key one after the other. An event without a key waits for no other.",
        ),
      ),
    ),
  }),
  v.title("NewEvent"),
);
export const ingestBodyExample = { payload: examplePayload };

export const BatchBody = jsonObject({ events: v.pipe(v.array(IngestBody), v.minLength(1), v.maxLength(1000)) });
export const batchBodyExample = { events: [{ payload: examplePayload }, { payload: { event_type: "order.paid" } }] };

const ingestRefusals: Readonly<Record<number, ResponseDescription>> = {
  400: invalidRequest("payload is required.", "payload_required"),
  402: refusal("The account's card is not verified yet, or a charge is outstanding.", cardNotVerified()),
  403: refusal("The operator has suspended the account.", suspendedByOperator()),
  422: refusal("The idempotency key was used with another path or body.", idempotencyConflict()),
  429: failure(
    "The monthly quota is used up, and `Retry-After` lasts until the end of the month; or, with `storage_exceeded`, the account's events take all the storage that it may use.",
    "quota_exceeded",
    "All of the account's 10000 events for this month are used; wait until next month or ask for a higher quota.",
  ),
};

export const ingestResponses: Readonly<Record<number, ResponseDescription>> = {
  202: {
    description: "The event is stored and queued for delivery.",
    schema: v.object({ status: v.literal("accepted"), eventId: v.string() }),
    example: { status: "accepted", eventId: exampleEventId },
  },
  ...ingestRefusals,
};

export const batchResponses: Readonly<Record<number, ResponseDescription>> = {
  202: {
    description: "All events are stored and queued for delivery; the ids are in the order of the events.",
    schema: v.object({ status: v.literal("accepted"), eventIds: v.array(v.string()) }),
    example: { status: "accepted", eventIds: [exampleEventId, "evt_01jc8x2m4f7n9q3s5v7y9a1c3f"] },
  },
  ...ingestRefusals,
};

// ---------------------------------------------------------------- queries

/** Zero-indexed, and no page number is too high: pages past the last one are empty. */
const pageNumber = v.pipe(
  v.string("must be a whole number"),
  v.regex(/^-?\d+$/, "must be a whole number"),
  v.transform((digits) => Math.min(Number(digits), Number.MAX_SAFE_INTEGER)),
  v.minValue(0, "must be at least 0"),
);

/** Specification, "Limits": 20 by default, at most 1,000. */
const pageSize = queryInteger(1, 1000);

export const isoTime = (role: "start" | "end") =>
  v.pipe(
    v.string("must be an ISO 8601 time"),
    v.description(
      `ISO 8601, inclusive. UTC if no zone is given; a date alone means its ${role === "start" ? "first" : "last"} millisecond.`,
    ),
    v.rawTransform<string, number>(({ dataset, addIssue, NEVER }) => {
      const ms = parseIso(dataset.value, role);
      if (ms !== null) return ms;
      addIssue({ message: "must be an ISO 8601 time such as 2026-03-01T12:34:56.789Z, or a date such as 2026-03-01" });
      return NEVER;
    }),
  );

export const attemptsQuery = closedQuery({
  page: v.optional(queryInteger(0, 999_999_999_999), "0"),
  size: v.optional(queryInteger(1, 1000), "100"),
});

const maxSearchLength = 200;
const maxReplayIdLength = 100;

const failureCodeNames = Object.keys(failureCodes) as FailureCode[];

/** A time range does not begin after its end; either may be missing. */
export const inOrder = <
  T extends { readonly [field in Start | End]?: number | undefined },
  const Start extends string,
  const End extends string,
>(
  start: Start,
  end: End,
) =>
  v.rawCheck<T>(({ dataset, addIssue }) => {
    if (!dataset.typed) return;
    const input = dataset.value;
    const [from, to] = [input[start], input[end]];
    if (from === undefined || to === undefined || from <= to) return;
    const field = { type: "object", origin: "value", input: { ...input }, key: start, value: from } as const;
    addIssue({ message: `must not be after ${end}`, path: [field] });
  });

/** Parts of queries and bodies that select records or events. */
export const webhookFilter = v.pipe(text(2048), v.description("Id or URL of a webhook, including removed ones."));

export const typeFilter = v.pipe(text(maxEventTypeLength), v.description("Exact type of the event."));
export const codeFilter = v.pipe(
  v.picklist(failureCodeNames, `must be one of ${failureCodeNames.join(", ")}`),
  v.description("`errorCode` of the records: those that failed for this reason, or are waiting for a retry after it."),
);

const stateName = v.picklist(deliveryStates, "must be DELIVERED, FAILED, PENDING or SKIPPED");

/** What both lists of records take. */
const listEntries = {
  page: v.optional(pageNumber, "0"),
  size: v.optional(pageSize, "20"),
  webhook: v.optional(webhookFilter),
  type: v.optional(typeFilter),
  q: v.optional(
    v.pipe(
      text(maxSearchLength),
      v.check((given) => given.isWellFormed(), "must be well-formed text"),
      v.description(
        "Text in the payload, exactly as it is written there, or part of the event's id. The search goes from the newest event back, ends after 200,000 events, 500 ms or a full page, and says in `searchedTo` how far it got. An event whose whole id is given comes first wherever it is, also when such a search is continued.",
      ),
    ),
  ),
  code: v.optional(codeFilter),
  status: v.optional(
    v.pipe(
      queryInteger(statusRange.lowest, statusRange.highest),
      v.description("`statusCode` of the records: the response status of the latest attempt, if it failed."),
    ),
  ),
  replay: v.optional(
    v.pipe(
      text(maxReplayIdLength),
      v.description("Id of a replay: the records whose latest run of attempts it started."),
    ),
  ),
  from: v.optional(isoTime("start")),
  to: v.optional(isoTime("end")),
  payload: v.optional(
    v.pipe(
      v.picklist(["true", "false", "start"], "must be true, false or start"),
      v.description(
        "`false` leaves `originalPayload` null, for lists that do not show it. `start` does, too, but shows the beginning in `payloadStart`.",
      ),
    ),
    "true",
  ),
};

export const listQuery = v.pipe(
  closedQuery({
    ...listEntries,
    state: v.optional(v.pipe(stateName, v.description("`state` of the records, as in `/v1/events/state/{state}`."))),
  }),
  inOrder("from", "to"),
);

/** Of the list whose path names the state. */
export const stateListQuery = v.pipe(
  closedQuery(listEntries, new Map([["state", "belongs in the path alone; leave it out of the query"]])),
  inOrder("from", "to"),
);

export type ListQuery = v.InferOutput<typeof listQuery>;

export const statePath = v.object({ state: stateName });

export const eventPath = v.object({ id: v.string() });

const minuteMs = 60_000;

const bucketDuration = v.pipe(
  v.string("must be a duration"),
  v.description("Width of a bucket, in whole minutes: 1m, 5m or 1h, for example."),
  v.rawTransform<string, number>(({ dataset, addIssue, NEVER }) => {
    const ms = parseDuration(dataset.value);
    if (ms !== null && ms % minuteMs === 0) return ms;
    addIssue({ message: "must be a duration of whole minutes such as 1m, 5m or 1h" });
    return NEVER;
  }),
);

export const statsQuery = v.pipe(
  closedQuery({
    from: v.optional(isoTime("start")),
    to: v.optional(isoTime("end")),
    bucket: v.optional(bucketDuration, "1m"),
    webhook: v.optional(webhookFilter),
  }),
  inOrder("from", "to"),
);

export type StatsQuery = v.InferOutput<typeof statsQuery>;

// ---------------------------------------------------------------- answers

const time = v.string();

export const eventType = v.pipe(
  v.nullable(v.string()),
  v.description("The `event_type` that was submitted, or else the payload's own `event_type` or `type`."),
);

export const recordBody = v.pipe(
  v.object({
    eventId: v.string(),
    tenantId: v.string(),
    state: v.pipe(
      v.string(),
      // Open-ended: a client must not break when another state is added (rules, section 7).
      v.metadata({
        description:
          "DELIVERED or FAILED; PENDING while a delivery is queued, in flight or waiting for a retry; SKIPPED if no webhook takes the event. More values may be added.",
        "x-extensible-enum": [...deliveryStates],
      }),
    ),
    ingestionTimestamp: time,
    targetWebhook: v.pipe(
      v.string(),
      v.description("Empty if no webhook was registered when the event arrived, or none takes it."),
    ),
    errorReason: v.nullable(v.string()),
    originalPayload: v.pipe(
      v.nullable(v.record(v.string(), v.unknown())),
      v.description(
        "The payload as submitted; null only in a list with `payload=false` or `payload=start`, when `payloadErased`, and when `unreadable`.",
      ),
    ),
    attempts: v.pipe(v.number(), v.integer()),
    attemptsForgotten: v.optional(
      v.pipe(
        v.number(),
        v.integer(),
        v.description(
          `How many of the attempts are older than the latest ${keptAttempts} and no longer listed; absent if none.`,
        ),
      ),
    ),
    lastAttemptAt: v.nullable(time),
    lastDurationMs: v.pipe(
      v.nullable(v.pipe(v.number(), v.integer())),
      v.description("How long the latest attempt took; null before the first one, and in records of earlier versions."),
    ),
    nextAttemptAt: v.pipe(
      v.nullable(time),
      v.description(
        "When the next attempt is due. It starts no earlier, and not while the webhook or all deliveries are paused or the operator has suspended the account.",
      ),
    ),
    heldBack: v.optional(
      v.pipe(
        v.literal(true),
        v.description(
          "Present only while the record waits for an earlier delivery of its ordering key to end; it then has no `nextAttemptAt`.",
        ),
      ),
    ),
    heldBackBy: v.optional(
      v.pipe(
        v.string(),
        v.description("Id of the event whose delivery it waits for; absent with `payload=false` and `payload=start`."),
      ),
    ),
    errorCode,
    statusCode: v.pipe(
      v.nullable(v.pipe(v.number(), v.integer())),
      v.description("The response status if `errorCode` is `http_status`, otherwise null."),
    ),
    eventType,
    orderingKey: v.optional(
      v.pipe(
        v.string(),
        v.description(
          "The `ordering_key` that was submitted; absent if there was none, and with `payload=false` and `payload=start`.",
        ),
      ),
    ),
    payloadStart: v.optional(
      v.pipe(
        v.nullable(v.string()),
        v.description(
          `Only with \`payload=start\`: its first ${payloadStart.bytes} bytes as text; null if it has more than ${payloadStart.ofAtMost}, and when \`originalPayload\` would be null without it.`,
        ),
      ),
    ),
    replayGroupId: v.nullable(v.string()),
    payloadErased: v.optional(
      v.pipe(
        v.literal(true),
        v.description(
          "Present only if the payload is older than payloads of this account are kept. `originalPayload` is then null, and the event cannot be replayed.",
        ),
      ),
    ),
    unreadable: v.optional(
      v.pipe(
        v.literal(true),
        v.description(
          "Present only if the record's page in the database is damaged. `originalPayload` is then null, other lost fields are empty, and the end of the id may be zeros.",
        ),
      ),
    ),
  }),
  v.title("EventRecord"),
);

export const recordExample = {
  eventId: exampleEventId,
  tenantId: "t5k2m8q0w3r7xa",
  state: "FAILED",
  ingestionTimestamp: "2026-03-01T12:34:56.789Z",
  targetWebhook: "https://example.com/hooks",
  errorReason: "HTTP 404 from https://example.com/hooks",
  originalPayload: examplePayload,
  attempts: 1,
  lastAttemptAt: "2026-03-01T12:34:56.812Z",
  lastDurationMs: 41,
  nextAttemptAt: null,
  errorCode: "http_status",
  statusCode: 404,
  eventType: "order.created",
  replayGroupId: null,
};

export const recordsBody = v.array(recordBody);
export const attemptsBody = v.array(attemptBody);

export const pageBody = v.pipe(
  v.object({
    events: v.array(recordBody),
    total: v.pipe(
      v.number(),
      v.integer(),
      v.description(
        "Number of matching records: with any filter but the state counted up to 10,000, with `q` those found so far.",
      ),
    ),
    totalIsExact: v.optional(
      v.pipe(
        v.boolean(),
        v.description(
          "Only with `webhook`, `type`, `code`, `status`, `replay`, `from`, `to` or `q`: false if more than 10,000 records match, or if the search has not come to its end.",
        ),
      ),
    ),
    searchedTo: v.optional(
      v.pipe(
        v.nullable(time),
        v.description(
          "Only with `q`: the ingestion time of the newest event that was not searched; null if all were. `total` counts what was found so far; to go on after its last page, pass this time as `to`.",
        ),
      ),
    ),
    totalEvents: v.optional(
      v.pipe(
        v.number(),
        v.integer(),
        v.description(
          "Number of events of the account, each with one record per webhook; only in the unfiltered list.",
        ),
      ),
    ),
  }),
  v.title("EventRecordPage"),
);

export const pageExample = { events: [recordExample], total: 1, totalEvents: 1 };

export const deliveryBody = v.pipe(
  v.object({ headers: v.record(v.string(), v.string()), body: v.string(), eventType }),
  v.title("Delivery"),
);

export const deliveryExample = {
  headers: {
    "Content-Type": "application/json",
    "Service-Event-Id": exampleEventId,
    "Service-Signature": "3q2+7wAA…",
  },
  body: `{"eventId":"${exampleEventId}","tenantId":"t5k2m8q0w3r7xa","ingestionTimestamp":"2026-03-01T12:34:56.789Z","payload":{"event_type":"order.created","order_id":1042}}`,
  eventType: "order.created",
};

const statCount = v.pipe(v.number(), v.integer());

const statSums = {
  accepted: v.optional(v.pipe(statCount, v.description("Accepted events; absent with `webhook`."))),
  delivered: statCount,
  failed: statCount,
  attempts: statCount,
  p50Ms: v.pipe(v.nullable(v.number()), v.description("Median latency of attempts that got a response.")),
  p95Ms: v.nullable(v.number()),
};

export const statsBody = v.pipe(
  v.object({
    buckets: v.array(v.object({ at: v.pipe(time, v.description("Start of the bucket.")), ...statSums })),
    total: v.pipe(
      v.object(statSums),
      v.description("All buckets together; percentiles cover all their attempts and are not averages."),
    ),
    waiting: v.optional(
      v.pipe(
        v.object({
          records: v.pipe(statCount, v.description("Records that are PENDING now.")),
          oldestIngestionTimestamp: v.pipe(
            v.nullable(time),
            v.description(
              "Ingestion time of the oldest of their events, replayed ones included; null if there is none.",
            ),
          ),
        }),
        v.description("What is waiting at this moment, whatever the range; absent with `webhook`."),
      ),
    ),
  }),
  v.title("Stats"),
);

const statSumsExample = { accepted: 120, delivered: 118, failed: 2, attempts: 123, p50Ms: 41.5, p95Ms: 181 };

export const statsExample = {
  buckets: [{ at: "2026-03-01T12:34:00.000Z", ...statSumsExample }],
  total: statSumsExample,
  waiting: { records: 12, oldestIngestionTimestamp: "2026-03-01T12:34:16.789Z" },
};

export const noSuchEvent = () => notFound("The account has no event with this id.", "event_not_found");

export const eventNotFound = refusal("The event does not exist.", noSuchEvent());
