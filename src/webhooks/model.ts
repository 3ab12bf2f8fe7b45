import * as v from "valibot";
import type { Attempt } from "../domain/delivery.ts";
import { failureCodes } from "../domain/failure.ts";
import { listedLabelCharacters } from "../domain/replay.ts";
import type { Webhook } from "../domain/webhook.ts";
import { jsonObject } from "../http/validation.ts";
import { formatIso, formatIsoOrNull } from "../lib/iso-time.ts";
import type { WebhookHealth } from "../store/store.ts";

/** Specification, "Webhook entry", the form of the input. The URL itself is judged by `checkWebhooks`. */
const webhookEntry = jsonObject({
  webhook_url: v.pipe(
    v.string("must be a string"),
    v.description("An absolute https URL with a public host, at most 2,048 characters."),
  ),
  name: v.optional(v.pipe(v.string("must be a string"), v.maxLength(200, "must have at most 200 characters")), ""),
});

export const webhookEntries = v.array(webhookEntry, "must be an array of webhooks");

export type WebhookEntry = v.InferOutput<typeof webhookEntry>;

export const webhookEntriesExample = [{ webhook_url: "https://example.com/hooks", name: "Orders" }];

export const savedWebhooks = v.array(v.object({ webhook_url: v.string(), name: v.string() }));

export const webhookList = v.array(v.object({ id: v.string(), url: v.string(), name: v.string() }));

export const webhookListExample = [
  { id: "wh_7m4zk1q8n3b6w0x5c2v9t7r4ye", url: "https://example.com/hooks", name: "Orders" },
];

export const webhookPath = v.object({ id: v.string() });

const failureMeanings = Object.entries(failureCodes).map(([code, meaning]) => `\`${code}\`: ${meaning}`);

/** Open: a client must not break when another code joins these (README, "Beyond the specification"). */
export const errorCode = v.pipe(
  v.nullable(v.string()),
  v.metadata({
    description: `Why it failed, for programs; null without a failure, and for those that a version before the codes stored. ${failureMeanings.join("; ")}. Other values may come.`,
    "x-extensible-enum": Object.keys(failureCodes),
  }),
);

const records = v.pipe(v.number(), v.integer());
const lastTime = v.nullable(v.string());

export const webhookHealthList = v.array(
  v.object({
    id: v.string(),
    url: v.string(),
    records: v.pipe(records, v.description("Records that were looked at; the next three add up to it.")),
    delivered: records,
    failed: records,
    pending: records,
    lastDeliveredAt: v.pipe(lastTime, v.description("When the newest attempt that was acknowledged began.")),
    lastFailedAt: v.pipe(
      lastTime,
      v.description("When the newest failed attempt began, of records that failed or wait for their next try."),
    ),
    lastError: v.pipe(v.nullable(v.string()), v.description("The reason of that failure.")),
    lastErrorCode: errorCode,
    lastStatusCode: v.optional(
      v.pipe(v.number(), v.integer(), v.description("Of the newest attempt; absent when it was not answered.")),
    ),
  }),
);

export const webhookHealthExample = [
  {
    id: "wh_7m4zk1q8n3b6w0x5c2v9t7r4ye",
    url: "https://example.com/hooks",
    records: 100,
    delivered: 96,
    failed: 1,
    pending: 3,
    lastDeliveredAt: "2026-03-01T12:34:56.789Z",
    lastFailedAt: "2026-03-01T12:34:58.002Z",
    lastError: "HTTP 503 from https://example.com/hooks",
    lastErrorCode: "http_status",
    lastStatusCode: 503,
  },
];

/** One attempt, in the fields of `GET /v1/events/{id}/attempts`. */
export const attemptBody = v.object({
  targetWebhook: v.string(),
  number: v.pipe(v.number(), v.integer()),
  startedAt: v.string(),
  durationMs: v.pipe(v.number(), v.integer()),
  statusCode: v.nullable(v.pipe(v.number(), v.integer())),
  error: v.nullable(v.string()),
  errorCode,
  responseBody: v.string(),
  replayGroupId: v.pipe(
    v.nullable(v.string()),
    v.description(
      `At most ${listedLabelCharacters} characters of the label; its records and its replay have it whole.`,
    ),
  ),
  replayGroupIdIsCut: v.optional(
    v.pipe(
      v.literal(true),
      v.description("Only when the label is longer; `replayGroupId` then ends with an ellipsis."),
    ),
  ),
});

export const attemptExample = {
  targetWebhook: "https://example.com/hooks",
  number: 1,
  startedAt: "2026-03-01T12:34:56.789Z",
  durationMs: 48,
  statusCode: 200,
  error: null,
  errorCode: null,
  responseBody: "ok",
  replayGroupId: null,
};

export const toSavedWebhook = ({ url, name }: Webhook) => ({ webhook_url: url, name });

export const toWebhookListEntry = ({ id, url, name }: Webhook) => ({ id, url, name });

export const toWebhookHealth = ({ webhook, lastStatusCode, ...health }: WebhookHealth) => ({
  id: webhook.id,
  url: webhook.url,
  records: health.records,
  delivered: health.delivered,
  failed: health.failed,
  pending: health.pending,
  lastDeliveredAt: formatIsoOrNull(health.lastDeliveredAt),
  lastFailedAt: formatIsoOrNull(health.lastFailedAt),
  lastError: health.lastError,
  lastErrorCode: health.lastErrorCode,
  ...(lastStatusCode !== null && { lastStatusCode }),
});

export const toAttemptBody = (attempt: Attempt) => ({
  targetWebhook: attempt.targetWebhook,
  number: attempt.number,
  startedAt: formatIso(attempt.startedAt),
  durationMs: attempt.durationMs,
  statusCode: attempt.statusCode,
  error: attempt.error,
  errorCode: attempt.errorCode,
  responseBody: attempt.responseBody,
  replayGroupId: attempt.replayGroupId,
  ...(attempt.isReplayGroupIdCut && { replayGroupIdIsCut: true as const }),
});
