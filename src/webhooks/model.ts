import * as v from "valibot";
import type { Webhook } from "../domain/webhook.ts";
import { errorCode } from "../events/attempt-model.ts";
import { jsonObject } from "../http/validation.ts";
import { formatIsoOrNull } from "../lib/iso-time.ts";
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

const records = v.pipe(v.number(), v.integer());
const lastTime = v.nullable(v.string());

export const webhookHealthList = v.array(
  v.object({
    id: v.string(),
    url: v.string(),
    records: v.pipe(records, v.description("Records taken into account: the sum of the next three.")),
    delivered: records,
    failed: records,
    pending: records,
    lastDeliveredAt: v.pipe(lastTime, v.description("Start of the latest acknowledged attempt.")),
    lastFailedAt: v.pipe(
      lastTime,
      v.description("Start of the latest failed attempt, among records that have failed or are waiting for a retry."),
    ),
    lastError: v.pipe(v.nullable(v.string()), v.description("The reason of that failure.")),
    lastErrorCode: errorCode,
    lastStatusCode: v.optional(
      v.pipe(v.number(), v.integer(), v.description("Of the latest attempt; absent if it got no response.")),
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
