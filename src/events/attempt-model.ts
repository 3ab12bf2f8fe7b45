import * as v from "valibot";
import type { AnswerHead, Attempt } from "../domain/delivery.ts";
import { failureCodes } from "../domain/failure.ts";
import { listedLabelCharacters } from "../domain/replay.ts";
import { formatIso } from "../lib/iso-time.ts";

const failureMeanings = Object.entries(failureCodes).map(([code, meaning]) => `\`${code}\`: ${meaning}`);

/** Open-ended: a client must not break when another code is added (rules, section 15). */
export const errorCode = v.pipe(
  v.nullable(v.string()),
  v.metadata({
    description: `Why it failed, for programs; null without a failure and for failures recorded before codes existed. ${failureMeanings.join("; ")}. More values may be added.`,
    "x-extensible-enum": Object.keys(failureCodes),
  }),
);

/** One attempt, in the fields of `GET /v1/events/{id}/attempts`. */
export const attemptBody = v.pipe(
  v.object({
    targetWebhook: v.string(),
    number: v.pipe(v.number(), v.integer()),
    startedAt: v.string(),
    durationMs: v.pipe(v.number(), v.integer()),
    statusCode: v.nullable(v.pipe(v.number(), v.integer())),
    error: v.nullable(v.string()),
    errorCode,
    responseBody: v.string(),
    responseHeaders: v.optional(
      v.pipe(
        v.array(v.object({ name: v.string(), value: v.string() })),
        v.description(
          "Headers of a response that did not acknowledge the delivery, in their order: as many whole ones as fit into 4,096 characters.",
        ),
      ),
    ),
    responseHeadersAreCut: v.optional(
      v.pipe(v.literal(true), v.description("Present only if some headers did not fit.")),
    ),
    address: v.optional(v.pipe(v.string(), v.description("IP address from which such a response came."))),
    replayGroupId: v.pipe(
      v.nullable(v.string()),
      v.description(
        `Label of the replay, at most ${listedLabelCharacters} characters of it; records and replays show it in full.`,
      ),
    ),
    replayGroupIdIsCut: v.optional(
      v.pipe(
        v.literal(true),
        v.description("Present only if the label is longer; `replayGroupId` then ends with an ellipsis."),
      ),
    ),
  }),
  v.title("Attempt"),
);

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

const toHeadFields = ({ address, headers, isCut }: AnswerHead) => ({
  responseHeaders: headers.map(([name, value]) => ({ name, value })),
  ...(isCut && { responseHeadersAreCut: true as const }),
  ...(address !== null && { address }),
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
  ...(attempt.answerHead && toHeadFields(attempt.answerHead)),
  replayGroupId: attempt.replayGroupId,
  ...(attempt.isReplayGroupIdCut && { replayGroupIdIsCut: true as const }),
});
