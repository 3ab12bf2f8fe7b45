import * as v from "valibot";
import { maxEventTypePatterns } from "../domain/event-types.ts";
import type { DisabledReason } from "../domain/failing-webhook.ts";
import { highestRateLimit, stateOf, type Webhook, type WebhookState } from "../domain/webhook.ts";
import { masked, mostOwnHeaders, type OwnHeaders } from "../domain/webhook-headers.ts";
import { attemptBody, attemptExample, errorCode } from "../events/attempt-model.ts";
import { eventType, givenEvent } from "../events/model.ts";
import { closedQuery, jsonObject, withoutZero } from "../http/validation.ts";
import { formatIsoOrNull } from "../lib/iso-time.ts";
import type { WebhookHealth } from "../store/store.ts";

/** What every setting of an entry has in common. */
const keepsIfLeftOut = "If left out, a URL that stays keeps its setting.";

/** Rules, section 14. The patterns themselves are checked by `checkWebhooks`. */
const eventTypes = v.pipe(
  v.nullable(v.array(v.string("must be a string"), "must be an array of patterns, or null")),
  v.description(
    `The event types that the webhook takes, as at most ${maxEventTypePatterns} patterns: \`order.paid\`, or \`order.*\` for all that begin with \`order.\`. Null, the default: every event. ${keepsIfLeftOut}`,
  ),
);

const paused = v.pipe(
  v.nullable(v.boolean("must be true or false")),
  v.description(
    `While true, deliveries to the webhook wait; once it is false again, they go out, oldest first. False, or null, by default. ${keepsIfLeftOut}`,
  ),
);

const limit = v.pipe(
  v.number("must be a number"),
  v.integer("must be an integer"),
  v.minValue(1, "must be at least 1"),
);

const rateLimit = v.pipe(
  v.nullable(v.pipe(limit, v.maxValue(highestRateLimit, `must be at most ${highestRateLimit}`))),
  v.description(
    `How many attempts to the webhook may start per second, spread over the second. Null, the default: no such limit. ${keepsIfLeftOut}`,
  ),
);

/** The upper bound is a setting of the server, which `checkWebhooks` knows. */
const maxConcurrency = v.pipe(
  v.nullable(limit),
  v.description(
    `How many attempts to the webhook may be in flight at once, up to the server's own limit. Null, the default: that limit. ${keepsIfLeftOut}`,
  ),
);

const ordered = v.pipe(
  v.nullable(v.boolean("must be true or false")),
  v.description(
    `Whether events with the same \`ordering_key\` are delivered one after the other, each once the delivery before it has ended. False, or null, by default. ${keepsIfLeftOut}`,
  ),
);

/** Keys that JavaScript gives a special meaning on an object, and that models leave out. */
const unusable = ["__proto__", "constructor", "prototype"];

/** Names and values are checked by `checkWebhooks`. */
const headers = v.pipe(
  v.nullable(
    v.pipe(
      v.custom<Record<string, string>>(
        (value) => typeof value === "object" && value !== null && !Array.isArray(value),
        "must be an object of names and values, or null",
      ),
      v.check(
        (value) => !unusable.some((name) => Object.hasOwn(value, name)),
        `must not have the names ${unusable.join(", ")}`,
      ),
      v.record(v.string(), v.string("must be a string")),
    ),
  ),
  v.description(
    `Headers to send with each delivery in addition to Postrider's own, at most ${mostOwnHeaders}: \`{"Authorization": "Bearer …"}\`. Responses show masks in place of the values; a mask that is sent back keeps the value behind it. Null, the default: none. ${keepsIfLeftOut}`,
  ),
);

/** Specification, "Webhook entry", the input form. The URL itself is checked by `checkWebhooks`. */
const webhookEntry = v.pipe(
  jsonObject(
    {
      webhook_url: v.pipe(
        v.string("must be a string"),
        v.description("An absolute https URL with a public host, at most 2,048 characters."),
      ),
      name: v.optional(
        v.pipe(
          v.string("must be a string"),
          v.maxLength(200, "must have at most 200 characters"),
          withoutZero,
          v.description("A label. If left out, it becomes empty, even for a URL that stays."),
        ),
        "",
      ),
      event_types: v.optional(eventTypes),
      paused: v.optional(paused),
      rate_limit: v.optional(rateLimit),
      max_concurrency: v.optional(maxConcurrency),
      headers: v.optional(headers),
      ordered: v.optional(ordered),
    },
    ["url"],
  ),
  v.title("NewWebhook"),
);

export const webhookEntries = v.array(webhookEntry, "must be an array of webhooks");

export type WebhookEntry = v.InferOutput<typeof webhookEntry>;

export const webhookEntriesExample = [{ webhook_url: "https://example.com/hooks", name: "Orders" }];

export const savedWebhooks = v.array(v.object({ webhook_url: v.string(), name: v.string() }));

const webhookStates: Readonly<Record<WebhookState, string>> = {
  active: "deliveries go to it",
  paused: "deliveries wait until it is no longer paused",
  disabled: "nothing is sent to it until it is enabled",
};

const disabledReasons: Readonly<Record<DisabledReason, string>> = {
  failing: "every attempt had failed for too long",
  gone: "it answered several deliveries in a row with 410",
};

const oneOf = (words: Readonly<Record<string, string>>) =>
  v.pipe(
    v.string(),
    v.description(
      Object.entries(words)
        .map(([word, meaning]) => `\`${word}\`: ${meaning}`)
        .join("; "),
    ),
    v.metadata({ "x-extensible-enum": Object.keys(words) }),
  );

const settingFields = {
  state: oneOf(webhookStates),
  failing_since: v.pipe(
    v.nullable(v.string()),
    // `delivery/failing-webhooks.ts` notes it no earlier.
    v.description(
      "Start of the first failed attempt since the last success. Null while the webhook works, and until an attempt fails at least a minute after that first one or a second delivery in a row is answered with 410.",
    ),
  ),
  disabled_at: v.nullable(v.string()),
  disabled_reason: v.nullable(oneOf(disabledReasons)),
  event_types: v.nullable(v.array(v.string())),
  ordered: v.boolean(),
  paused: v.boolean(),
  rate_limit: v.nullable(v.pipe(v.number(), v.integer())),
  max_concurrency: v.nullable(v.pipe(v.number(), v.integer())),
  headers: v.nullable(v.record(v.string(), v.string())),
};

const plainFields = { id: v.string(), url: v.string(), name: v.string() };

/** The setting fields are there only with `expand=true`. */
export const webhookList = v.array(
  v.pipe(v.object({ ...plainFields, ...v.partial(v.object(settingFields)).entries }), v.title("ListedWebhook")),
);

export const webhookSettings = v.pipe(v.object({ ...plainFields, ...settingFields }), v.title("Webhook"));

export const webhookSettingsExample = {
  ...{ id: "wh_7m4zk1q8n3b6w0x5c2v9t7r4ye", url: "https://example.com/hooks", name: "Orders" },
  ...{ state: "active", failing_since: null, disabled_at: null, disabled_reason: null, event_types: null },
  ...{ ordered: false, paused: false, rate_limit: null, max_concurrency: null, headers: null },
};

export const webhookListExample = [
  { id: "wh_7m4zk1q8n3b6w0x5c2v9t7r4ye", url: "https://example.com/hooks", name: "Orders" },
];

export const listQuery = closedQuery({
  expand: v.optional(
    v.pipe(
      v.picklist(["true", "false"], 'must be "true" or "false"'),
      v.description("`true` shows all settings of each webhook."),
    ),
  ),
});

export const webhookPath = v.object({ id: v.string() });

const records = v.pipe(v.number(), v.integer());
const lastTime = v.nullable(v.string());

export const webhookHealthList = v.array(
  v.pipe(
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
        v.pipe(
          v.number(),
          v.integer(),
          v.description("Response status of the latest attempt; absent if it got no response."),
        ),
      ),
    }),
    v.title("WebhookHealth"),
  ),
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

export const toWebhookSettings = (webhook: Webhook, own: OwnHeaders) => ({
  ...toWebhookListEntry(webhook),
  state: stateOf(webhook),
  failing_since: formatIsoOrNull(webhook.failing?.since ?? null),
  disabled_at: formatIsoOrNull(webhook.disabled?.at ?? null),
  disabled_reason: webhook.disabled?.reason ?? null,
  event_types: webhook.eventTypes,
  ordered: webhook.ordered,
  paused: webhook.paused,
  rate_limit: webhook.rateLimit,
  max_concurrency: webhook.maxConcurrency,
  headers: own.length === 0 ? null : Object.fromEntries(masked(own)),
});

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

/** Only for the document; `sliceEvent` checks the bytes themselves. */
export const testBody = jsonObject({ ...givenEvent, payload: v.optional(givenEvent.payload) });
export const testBodyExample = { payload: { event_type: "order.created", order_id: 1042 } };

export const testedBody = v.pipe(
  v.object({
    eventId: v.pipe(v.string(), v.description("The id that the receiver got. Nothing is stored under it.")),
    ...attemptBody.entries,
    eventType: v.optional(v.pipe(eventType, v.description("Only with a payload of your own: the type of this event."))),
    typeIsTaken: v.optional(
      v.pipe(
        v.boolean(),
        v.description(
          "Only with a payload of your own: whether the webhook's `event_types` include that type. The test is sent either way.",
        ),
      ),
    ),
  }),
  v.title("TestedWebhook"),
);
export const testedExample = {
  eventId: "evt_01jc8x2m4e7n9q3s5v7y9a1c3e",
  ...attemptExample,
  eventType: "order.created",
  typeIsTaken: true,
};
