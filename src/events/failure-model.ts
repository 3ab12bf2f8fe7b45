import * as v from "valibot";
import { maxFailureGroups } from "../domain/failure-groups.ts";
import { closedQuery } from "../http/validation.ts";
import { formatIso } from "../lib/iso-time.ts";
import { newestLooked } from "../store/failure-report.ts";
import type { FailureGroup, FailureReport, UnlistedGroup } from "../store/failures.ts";
import { errorCode } from "./attempt-model.ts";
import { inOrder, isoTime, webhookFilter } from "./model.ts";

/** What `GET /v1/failures` takes and returns. */

export const failuresQuery = v.pipe(
  closedQuery({
    from: v.optional(isoTime("start")),
    to: v.optional(isoTime("end")),
    webhook: v.optional(webhookFilter),
  }),
  inOrder("from", "to"),
);

export type FailuresQuery = v.InferOutput<typeof failuresQuery>;

const count = v.pipe(v.number(), v.integer());

const groupBody = v.pipe(
  v.object({
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
  }),
  v.title("FailureGroup"),
);

const { answer: _answer, eventTypes: _types, eventIds: _ids, ...summedFields } = groupBody.entries;

const sumBody = v.object({
  ...summedFields,
  groups: v.pipe(count, v.description("Number of groups in this sum.")),
});

export const failuresBody = v.pipe(
  v.object({
    from: v.pipe(v.string(), v.description("Start of the hour that `from` lies in: whole hours are counted.")),
    to: v.pipe(v.string(), v.description("End of the hour that `to` lies in.")),
    groups: v.pipe(v.array(groupBody), v.description("Largest first, at most 100.")),
    unlisted: v.pipe(
      v.array(sumBody),
      v.description(
        "The smaller groups: one sum for each webhook, `errorCode` and `statusCode`, largest first; `ongoing` if one of its groups is.",
      ),
    ),
    total: v.pipe(count, v.description("Number of groups, including those in the sums.")),
    others: v.pipe(
      v.object({ waiting: count, failed: count }),
      v.description(
        `Records in no group, because an account has at most ${maxFailureGroups}; not counted with \`webhook\`.`,
      ),
    ),
  }),
  v.title("Failures"),
);

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
  unlisted: [],
  total: 1,
  others: { waiting: 0, failed: 0 },
};

type Judged<T> = T & { readonly isOngoing: boolean };

const toCountsBody = (group: Judged<UnlistedGroup>) => ({
  targetWebhook: group.webhook?.url ?? "",
  webhookId: group.webhook?.id ?? null,
  errorCode: group.code,
  statusCode: group.status,
  waiting: group.waiting,
  failed: group.failed,
  ongoing: group.isOngoing,
  lastFailedAt: formatIso(group.lastFailedAt),
  firstIngestionTimestamp: formatIso(group.firstEventAt),
  lastIngestionTimestamp: formatIso(group.lastEventAt),
});

const toGroupBody = (group: Judged<FailureGroup>) => ({
  ...toCountsBody(group),
  answer: group.line,
  eventTypes: group.types.map(({ type, records }) => ({ type, records })),
  eventIds: [...group.eventIds],
});

/** One sum for all groups that a list of events cannot tell apart. */
const toSums = (groups: readonly Judged<UnlistedGroup>[]) =>
  [...Map.groupBy(groups, ({ webhook, code, status }) => `${webhook?.id} ${code} ${status}`).values()]
    .map((ofSum) => ({ ...toCountsBody(ofSum.reduce(add)), groups: ofSum.length }))
    .sort((a, b) => b.waiting + b.failed - (a.waiting + a.failed));

const add = (a: Judged<UnlistedGroup>, b: Judged<UnlistedGroup>): Judged<UnlistedGroup> => ({
  ...a,
  waiting: a.waiting + b.waiting,
  failed: a.failed + b.failed,
  isOngoing: a.isOngoing || b.isOngoing,
  lastFailedAt: Math.max(a.lastFailedAt, b.lastFailedAt),
  firstEventAt: Math.min(a.firstEventAt, b.firstEventAt),
  lastEventAt: Math.max(a.lastEventAt, b.lastEventAt),
});

/** @param isOngoing as determined by `goesOn` */
export function toFailuresBody(
  { from, to, groups, unlisted, total, others }: FailureReport,
  isOngoing: (group: UnlistedGroup) => boolean,
) {
  const judged = <T extends UnlistedGroup>(group: T): Judged<T> => ({ ...group, isOngoing: isOngoing(group) });
  return {
    from: formatIso(from),
    to: formatIso(to),
    groups: groups.map((group) => toGroupBody(judged(group))),
    unlisted: toSums(unlisted.map(judged)),
    total,
    others: { ...others },
  };
}
