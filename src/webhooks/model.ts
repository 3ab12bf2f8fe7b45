import * as v from "valibot";
import type { Attempt, Webhook } from "../domain.ts";
import { jsonObject } from "../http/validation.ts";
import { formatIso } from "../lib/iso-time.ts";

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

/** One attempt, in the fields of `GET /v1/events/{id}/attempts`. */
export const attemptBody = v.object({
  targetWebhook: v.string(),
  number: v.pipe(v.number(), v.integer()),
  startedAt: v.string(),
  durationMs: v.pipe(v.number(), v.integer()),
  statusCode: v.nullable(v.pipe(v.number(), v.integer())),
  error: v.nullable(v.string()),
  responseBody: v.string(),
  replayGroupId: v.nullable(v.string()),
});

export const attemptExample = {
  targetWebhook: "https://example.com/hooks",
  number: 1,
  startedAt: "2026-03-01T12:34:56.789Z",
  durationMs: 48,
  statusCode: 200,
  error: null,
  responseBody: "ok",
  replayGroupId: null,
};

export const toSavedWebhook = ({ url, name }: Webhook) => ({ webhook_url: url, name });

export const toWebhookListEntry = ({ id, url, name }: Webhook) => ({ id, url, name });

export const toAttemptBody = (attempt: Attempt) => ({
  targetWebhook: attempt.targetWebhook,
  number: attempt.number,
  startedAt: formatIso(attempt.startedAt),
  durationMs: attempt.durationMs,
  statusCode: attempt.statusCode,
  error: attempt.error,
  responseBody: attempt.responseBody,
  replayGroupId: attempt.replayGroupId,
});
