import * as v from "valibot";
import { maxFailureGroups } from "../domain/failure-groups.ts";
import { closedQuery } from "../http/validation.ts";
import { formatIso } from "../lib/iso-time.ts";
import { newestLooked } from "../store/failure-report.ts";
import type { FailureGroup, FailureReport } from "../store/failures.ts";
import { errorCode } from "./attempt-model.ts";
import { isInOrder, isoTime, webhookFilter } from "./model.ts";

/** What `GET /v1/failures` takes and returns. */

export const failuresQuery = v.pipe(
  closedQuery({
    from: v.optional(isoTime("start")),
    to: v.optional(isoTime("end")),
    webhook: v.optional(webhookFilter),
  }),
  v.forward(
    v.check(({ from, to }) => isInOrder(from, to), "must not be after to"),
    ["from"],
  ),
);

export type FailuresQuery = v.InferOutput<typeof failuresQuery>;

const count = v.pipe(v.number(), v.integer());

const groupBody = v.object({
  targetWebhook: v.pipe(v.string(), v.description("Empty if no webhook was registered when the events arrived.")),
  webhookId: v.nullable(v.string()),
  errorCode,
  statusCode: v.nullable(count),
  answer: v.pipe(
    v.string(),
    v.description("First line of the responses, with numbers and ids replaced by `#`; empty if there was none."),
  ),
  waiting: v.pipe(count, v.description("Records waiting for a retry.")),
  failed: v.pipe(count, v.description("Records that have failed.")),
  ongoing: v.pipe(
    v.boolean(),
    v.description(
      "True while records are waiting, and until an event of these types has been delivered to the webhook after the last failure.",
    ),
  ),
  lastFailedAt: v.string(),
  firstIngestionTimestamp: v.pipe(v.string(), v.description("Ingestion time of the oldest event that is counted.")),
  lastIngestionTimestamp: v.pipe(v.string(), v.description("Ingestion time of the newest event that is counted.")),
  eventTypes: v.pipe(
    v.array(v.object({ type: v.nullable(v.string()), records: count })),
    v.description(
      `Types of the newest ${newestLooked} records, most frequent first, at most ten; null stands for events without a type.`,
    ),
  ),
  eventIds: v.pipe(v.array(v.string()), v.description("Ids of the newest events, at most three.")),
});

export const failuresBody = v.object({
  from: v.pipe(v.string(), v.description("Start of the hour that `from` lies in: whole hours are counted.")),
  to: v.pipe(v.string(), v.description("End of the hour that `to` lies in.")),
  groups: v.pipe(v.array(groupBody), v.description("Largest first, at most 100.")),
  total: v.pipe(count, v.description("Number of groups.")),
  others: v.pipe(
    v.object({ waiting: count, failed: count }),
    v.description(
      `Records in no group, because an account has at most ${maxFailureGroups}; not counted with \`webhook\`.`,
    ),
  ),
});

export const failuresExample = {
  from: "2026-03-01T12:00:00.000Z",
  to: "2026-03-02T12:59:59.999Z",
  groups: [
    {
      targetWebhook: "https://example.com/hooks",
      webhookId: "wh_01jc8x2m4e7n9q3s5v7y9a1c3e",
      errorCode: "http_status",
      statusCode: 503,
      answer: "Order # is locked",
      waiting: 12,
      failed: 3,
      ongoing: true,
      lastFailedAt: "2026-03-02T12:34:56.789Z",
      firstIngestionTimestamp: "2026-03-02T08:41:07.123Z",
      lastIngestionTimestamp: "2026-03-02T12:34:55.001Z",
      eventTypes: [{ type: "order.created", records: 15 }],
      eventIds: ["evt_01jc8x2m4e7n9q3s5v7y9a1c3e"],
    },
  ],
  total: 1,
  others: { waiting: 0, failed: 0 },
};

/** @param isOngoing as determined by `goesOn` */
export const toGroupBody = (group: FailureGroup, isOngoing: boolean) => ({
  targetWebhook: group.webhook?.url ?? "",
  webhookId: group.webhook?.id ?? null,
  errorCode: group.code,
  statusCode: group.status,
  answer: group.line,
  waiting: group.waiting,
  failed: group.failed,
  ongoing: isOngoing,
  lastFailedAt: formatIso(group.lastFailedAt),
  firstIngestionTimestamp: formatIso(group.firstEventAt),
  lastIngestionTimestamp: formatIso(group.lastEventAt),
  eventTypes: group.types.map(({ type, records }) => ({ type, records })),
  eventIds: [...group.eventIds],
});

export const toFailuresBody = (
  { from, to, total, others }: FailureReport,
  groups: readonly ReturnType<typeof toGroupBody>[],
) => ({
  from: formatIso(from),
  to: formatIso(to),
  groups: [...groups],
  total,
  others: { ...others },
});
