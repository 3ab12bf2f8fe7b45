import * as v from "valibot";
import type { InboxAnswer, ListedDelivery } from "../domain/inbox.ts";
import { closedQuery, jsonObject, queryInteger } from "../http/validation.ts";
import { formatIso } from "../lib/iso-time.ts";
import { defaultAnswer, maxKeptDeliveries } from "./inbox.ts";

/** Bodies, queries and responses of the inbox endpoints. */

/** Longer than the 10 s of an attempt, so that an answer can be set to come too late. */
const longestDelayMs = 15_000;

const wholeNumber = (min: number, max: number) =>
  v.pipe(
    v.number("must be a number"),
    v.integer("must be a whole number"),
    v.minValue(min, `must be at least ${min}`),
    v.maxValue(max, `must be at most ${max}`),
  );

export const answerBody = jsonObject({
  status: v.optional(v.pipe(wholeNumber(200, 599), v.description("The status to respond with.")), defaultAnswer.status),
  delay_ms: v.optional(
    v.pipe(
      wholeNumber(0, longestDelayMs),
      v.description("How long to wait before responding. From 10,000 on, the attempt times out first."),
    ),
    defaultAnswer.delayMs,
  ),
  silent: v.optional(
    v.pipe(v.boolean("must be true or false"), v.description("Never respond, whatever the other fields say.")),
    defaultAnswer.silent,
  ),
});

export const savedAnswer = v.pipe(
  v.object({
    status: v.pipe(v.number(), v.integer()),
    delay_ms: v.pipe(v.number(), v.integer()),
    silent: v.boolean(),
  }),
  v.title("InboxAnswer"),
);

export const answerExample = { status: 503, delay_ms: 2000, silent: false };

export const inboxQuery = closedQuery({
  size: v.optional(queryInteger(1, maxKeptDeliveries), "20"),
  after: v.optional(
    v.pipe(v.string(), v.description("Id of a delivery: return only those received after it, for polling.")),
  ),
  before: v.optional(
    v.pipe(v.string(), v.description("Id of a delivery: return only those received before it, for the next page.")),
  ),
});

export const inboxBody = v.pipe(
  v.object({
    url: v.pipe(v.string(), v.description("The inbox. Register exactly this URL as a webhook.")),
    answer: savedAnswer,
    deliveries: v.array(
      v.pipe(
        v.object({
          id: v.string(),
          receivedAt: v.string(),
          eventId: v.string(),
          headers: v.record(v.string(), v.string()),
          body: v.pipe(v.string(), v.description("Exactly the text that was signed.")),
          answeredStatus: v.pipe(
            v.nullable(v.pipe(v.number(), v.integer())),
            v.description("What the inbox responded; null if it responded too late or never."),
          ),
          isTest: v.pipe(
            v.boolean(),
            v.description("Whether it was a test of the webhook, which is stored nowhere else."),
          ),
        }),
        v.title("InboxDelivery"),
      ),
    ),
    total: v.pipe(v.number(), v.integer(), v.description("Number of stored deliveries.")),
  }),
  v.title("Inbox"),
);

export const inboxExample = {
  url: "https://relay.example.com/inbox/5v9k2m7q0r4t8w1x3y6z0a2b4c",
  answer: { status: 204, delay_ms: 0, silent: false },
  deliveries: [
    {
      id: "ibx_7m4zk1q8n3b6w0x5c2v9t7r4ye",
      receivedAt: "2026-03-01T12:34:56.789Z",
      eventId: "evt_01jc8x2m4e7n9q3s5v7y9a1c3e",
      headers: {
        Host: "relay.example.com",
        "Content-Type": "application/json",
        "Service-Event-Id": "evt_01jc8x2m4e7n9q3s5v7y9a1c3e",
        "Content-Length": "146",
      },
      body: '{"eventId":"evt_01jc8x2m4e7n9q3s5v7y9a1c3e","tenantId":"t7m4zk1q8n3b6w","ingestionTimestamp":"2026-03-01T12:34:56.780Z","payload":{"total":12.50}}',
      answeredStatus: 204,
      isTest: false,
    },
  ],
  total: 1,
};

export const toAnswerBody = ({ status, delayMs, silent }: InboxAnswer) => ({ status, delay_ms: delayMs, silent });

/** The JSON text of a delivery, in pieces. */
export function deliveryPieces({ body, ...delivery }: ListedDelivery): (string | Uint8Array)[] {
  const { id, eventId, headers, answeredStatus, isTest } = delivery;
  const before = JSON.stringify({ id, receivedAt: formatIso(delivery.receivedAt), eventId, headers });
  const after = JSON.stringify({ answeredStatus, isTest });
  return [`${before.slice(0, -1)},"body":`, body, `,${after.slice(1)}`];
}
