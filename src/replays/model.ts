import * as v from "valibot";
import { DomainError, notFound } from "../domain/errors.ts";
import { statusRange } from "../domain/failure.ts";
import type { ListedReplay, Replay, ReplayFilter, ReplayPreview } from "../domain/replay.ts";
import { suspendedByOperator, suspendedForCharge } from "../domain/standing.ts";
import { codeFilter, inOrder, isoTime, typeFilter } from "../events/model.ts";
import type { ResponseDescription } from "../http/endpoint.ts";
import { failure, invalidRequest, refusal } from "../http/error-models.ts";
import { closedObject, closedQuery, emptyQuery, queryInteger, rule, text } from "../http/validation.ts";
import { formatIso } from "../lib/iso-time.ts";

/** Bodies, queries and responses of the replay endpoints. */

/** Specification, "Replay group": any non-empty string. */
const replayGroupId = v.pipe(
  v.string("must be a string"),
  v.nonEmpty("must not be empty"),
  v.description(
    "A label of your choice. Replayed records carry it, and so do their deliveries as the `Service-Replay-Group` header: UTF-8, percent-encoded outside visible ASCII (0x21 to 0x7e) and for `%`. The header is omitted if that exceeds 1,024 bytes.",
  ),
);

const eventId = v.pipe(v.string("must be a string"), v.nonEmpty("must not be empty"));

/** Rules, section 10: the same for every kind. An event is selected if one of its records meets all of them. */
const filterFields = {
  webhook: v.optional(
    v.pipe(
      text(2048),
      v.description(
        "Id or URL of a registered webhook. Selects the events that have a record for it, and delivers them to it alone. With `code` or `status`, also those without a record for it that failed so for a webhook that was removed, or found none.",
      ),
    ),
  ),
  type: v.optional(typeFilter),
  code: v.optional(codeFilter),
  status: v.optional(
    v.pipe(
      v.number("must be a whole number"),
      v.integer("must be a whole number"),
      v.minValue(statusRange.lowest, `must be at least ${statusRange.lowest}`),
      v.maxValue(statusRange.highest, `must be at most ${statusRange.highest}`),
      v.description("`statusCode` of the records: the response status of the latest attempt, if it failed."),
    ),
  ),
  from: v.optional(isoTime("start")),
  to: v.optional(isoTime("end")),
};

export const filterOfBody = ({ webhook, type, code, status, from, to }: ReplayFilter): ReplayFilter => ({
  ...{ webhook, type, code, status, from, to },
});

/** Of every replay and of the preview. */
export const startQuery = emptyQuery(
  ["replayGroupId", ...Object.keys(filterFields)],
  new Map([["state", "is not a parameter of this request; /v1/events/replays/failed selects what is FAILED"]]),
);

export const singleBody = v.pipe(closedObject({ eventId, replayGroupId, ...filterFields }), inOrder("from", "to"));

export const bulkBody = v.pipe(closedObject({ replayGroupId, ...filterFields }), inOrder("from", "to"));

export const timelineBody = v.pipe(
  closedObject({ replayGroupId, startTime: isoTime("start"), endTime: isoTime("end"), ...filterFields }),
  inOrder("from", "to"),
  inOrder("startTime", "endTime"),
);

const previewFields = closedObject({
  kind: v.picklist(["single", "timeline", "all", "failed"], 'must be "single", "timeline", "all" or "failed"'),
  replayGroupId: v.optional(replayGroupId),
  eventId: v.optional(eventId),
  startTime: v.optional(isoTime("start")),
  endTime: v.optional(isoTime("end")),
  ...filterFields,
});

export type PreviewFields = v.InferOutput<typeof previewFields>;

type FieldOfOneKind = "eventId" | "startTime" | "endTime";

/** Makes a field required for one kind of replay. */
const needed = (kind: PreviewFields["kind"], field: FieldOfOneKind) =>
  v.forward(
    rule<PreviewFields>("field_required", `is required for the kind "${kind}"`, (body) => {
      return body.kind !== kind || body[field] !== undefined;
    }),
    [field],
  );

/** Refuses a field for all other kinds, as their replays do. */
const onlyFor = (kind: PreviewFields["kind"], field: FieldOfOneKind) =>
  v.forward(
    v.check<PreviewFields, string>(
      (body) => body.kind === kind || body[field] === undefined,
      `belongs to the kind "${kind}" alone`,
    ),
    [field],
  );

/** The body of the replay plus its kind. The label makes no difference here, so it may be missing. */
export const previewBody = v.pipe(
  previewFields,
  inOrder("from", "to"),
  needed("single", "eventId"),
  needed("timeline", "startTime"),
  needed("timeline", "endTime"),
  onlyFor("single", "eventId"),
  onlyFor("timeline", "startTime"),
  onlyFor("timeline", "endTime"),
  inOrder("startTime", "endTime"),
);

export const listQuery = closedQuery({
  page: v.optional(queryInteger(0, 999_999_999_999), "0"),
  size: v.optional(queryInteger(1, 1000), "20"),
});

export const replayPath = v.object({ id: v.string() });

// ---------------------------------------------------------------- answers

export const replayBody = v.pipe(
  v.object({
    id: v.string(),
    kind: v.string(),
    replayGroupId: v.string(),
    status: v.pipe(v.string(), v.description("waiting, running, completed or cancelled.")),
    selected: v.pipe(v.number(), v.integer(), v.description("Events that the replay selected.")),
    queued: v.pipe(
      v.number(),
      v.integer(),
      v.description("Records queued for delivery. The following numbers count records, too."),
    ),
    delivered: v.pipe(v.number(), v.integer()),
    failed: v.pipe(v.number(), v.integer()),
    superseded: v.pipe(v.number(), v.integer(), v.description("Overtaken by a later replay before they finished.")),
    skipped: v.pipe(
      v.number(),
      v.integer(),
      v.description(
        "Not delivered again: failed for a URL that is no longer registered and has no replacement, the webhook is disabled, or the payload was erased.",
      ),
    ),
    createdAt: v.string(),
    completedAt: v.nullable(v.string()),
    returned: v.pipe(
      v.optional(v.pipe(v.number(), v.integer())),
      v.description(
        "Records that were waiting when the replay was cancelled and went back to their earlier state; absent if none.",
      ),
    ),
    payloadsErased: v.pipe(
      v.optional(v.pipe(v.number(), v.integer())),
      v.description("Events that are not sent because their payload was erased; absent if none."),
    ),
    filter: v.pipe(
      v.optional(
        v.object({
          webhook: v.optional(v.string()),
          type: v.optional(v.string()),
          code: v.optional(v.string()),
          status: v.optional(v.pipe(v.number(), v.integer())),
          from: v.optional(v.string()),
          to: v.optional(v.string()),
        }),
      ),
      v.description("The filters of the replay; absent if it had none."),
    ),
  }),
  v.title("Replay"),
);

export const toReplayBody = (replay: Replay) => ({
  id: replay.id,
  kind: replay.kind,
  replayGroupId: replay.replayGroupId,
  ...progressOf(replay),
});

/** The form sent on the stream: with the events that have just been queued, if any. */
export const toProgressMessage = (replay: Replay, eventIds: readonly string[], now: number) => ({
  ...toReplayBody(replay),
  ...(eventIds.length > 0 && { eventIds, queuedAt: formatIso(now) }),
});

const progressOf = (replay: Omit<Replay, "id" | "kind" | "replayGroupId">) => ({
  status: replay.status,
  selected: replay.selected,
  queued: replay.queued,
  delivered: replay.delivered,
  failed: replay.failed,
  superseded: replay.superseded,
  skipped: replay.skipped,
  createdAt: formatIso(replay.createdAt),
  completedAt: replay.completedAt === null ? null : formatIso(replay.completedAt),
  ...(replay.returned > 0 && { returned: replay.returned }),
  ...payloadsErasedOf(replay),
  ...(replay.filter && { filter: toFilterBody(replay.filter) }),
});

const payloadsErasedOf = ({ payloadsErased }: Pick<ReplayPreview, "payloadsErased">) =>
  payloadsErased > 0 ? { payloadsErased } : {};

const toFilterBody = ({ webhook, type, code, status, from, to }: ReplayFilter) => ({
  ...(webhook !== undefined && { webhook }),
  ...(type !== undefined && { type }),
  ...(code !== undefined && { code }),
  ...(status !== undefined && { status }),
  ...(from !== undefined && { from: formatIso(from) }),
  ...(to !== undefined && { to: formatIso(to) }),
});

/** The JSON text of a replay in a list, in pieces. */
export function replayPieces({ id, kind, replayGroupId, ...replay }: ListedReplay): (string | Uint8Array)[] {
  const before = JSON.stringify({ id, kind });
  const after = JSON.stringify(progressOf(replay));
  return [`${before.slice(0, -1)},"replayGroupId":`, replayGroupId, `,${after.slice(1)}`];
}

export const replayExample = toReplayBody({
  id: "rpl_4c8x1m7q0z5k2w9t6r3v8y1n4b",
  kind: "failed",
  replayGroupId: "after-the-outage",
  status: "running",
  selected: 132,
  queued: 132,
  delivered: 97,
  failed: 0,
  superseded: 0,
  skipped: 0,
  returned: 0,
  payloadsErased: 0,
  createdAt: Date.UTC(2026, 2, 1, 12, 34, 56, 789),
  completedAt: null,
  filter: { webhook: "wh_4c8x1m7q0z5k2w9t6r3v8y1n4b", type: "order.paid" },
});

export const replayListBody = v.pipe(
  v.object({ replays: v.array(replayBody), total: v.pipe(v.number(), v.integer()) }),
  v.title("ReplayList"),
);

export const previewedBody = v.object({
  selected: v.pipe(v.number(), v.integer()),
  payloadsErased: v.pipe(
    v.optional(v.pipe(v.number(), v.integer())),
    v.description("How many of these cannot be sent again because their payload was erased; absent if none."),
  ),
});

export const toPreviewedBody = ({ selected, payloadsErased }: ReplayPreview) => ({
  selected,
  ...payloadsErasedOf({ payloadsErased }),
});

const location = { Location: "Where to follow the replay's progress: /v1/events/replays/{id}." };

const singleInitiated: ResponseDescription = {
  description: "The event is queued for delivery again.",
  schema: v.object({ status: v.literal("initiated") }),
  example: { status: "initiated" },
  headers: location,
};

const bulkInitiated: ResponseDescription = {
  description: "The replay is accepted and runs in the background.",
  headers: location,
};

/** Specification, "Authentication", rule 4: here, and only here, another tenant's resource is 403. */
export const eventOfAnotherAccount = () =>
  new DomainError({
    kind: "forbidden",
    code: "event_of_another_account",
    message: "The event with this eventId belongs to another account.",
  });

export const noSuchEvent = () => notFound("There is no event with this eventId.", "event_not_found");

export const noSuchWebhook = () =>
  notFound(
    "webhook must be the id or the URL of one of the account's webhooks; GET /v1/tenants/webhooks lists them.",
    "webhook_not_found",
  );

export const noSuchReplay = () => notFound("The account has no replay with this id.", "replay_not_found");

const paymentRequired = refusal("The account is suspended for an outstanding charge.", suspendedForCharge());

const suspended = refusal("The operator has suspended the account.", suspendedByOperator());

export const webhookNotFound = refusal("`webhook` names no registered webhook.", noSuchWebhook());

export const singleResponses = {
  202: singleInitiated,
  400: invalidRequest("eventId is required.", "field_required"),
  402: paymentRequired,
  403: refusal(
    "The event belongs to another account, or the operator has suspended the account.",
    eventOfAnotherAccount(),
  ),
  404: refusal(
    "The event or the webhook does not exist, or with `event_not_selected` the event has no record that the filters select.",
    noSuchEvent(),
  ),
};

export const bulkResponses = {
  202: bulkInitiated,
  400: invalidRequest("replayGroupId is required.", "field_required"),
  402: paymentRequired,
  403: suspended,
  404: webhookNotFound,
  429: failure(
    "One bulk replay of the account is running and ten are waiting; or, with `too_many_replays_today`, it has reached its limit for 24 hours (in public mode).",
    "too_many_replays",
    "The account has 11 unfinished replays; wait for one to finish, or cancel one.",
  ),
};

export const replayNotFound = refusal("The replay does not exist.", noSuchReplay());
