import { fanOut, type WaitingRecord } from "./acceptance.ts";
import { beforeRun, type RecordBefore, type RecordNow } from "./cancelled-run.ts";
import type { FailureSelection } from "./event.ts";
import { takes } from "./event-types.ts";
import { type FailureMove, movesOf } from "./failure-groups.ts";
import type { Moment } from "./moment.ts";
import type { ReplayKind } from "./replay.ts";
import { type Counters, enterState, leaveState, moveState, type TenantState } from "./tenant-state.ts";
import { isEnabled, type Webhook } from "./webhook.ts";

/** A record of an event that is replayed. */
export interface ReplayedRecord extends RecordNow {
  readonly key: number;
  /** Null: the event found no webhook, or none that takes its type. */
  readonly webhookKey: number | null;
  /** Of that webhook, also if it is gone. */
  readonly url: string | null;
  readonly attempts: number;
}

/** What a record returns to if the replay is cancelled before it is sent. */
export interface Returnable {
  readonly returnsTo: RecordBefore;
}

/** An event that is replayed. */
export interface ReplayedEvent<Found extends ReplayedRecord = ReplayedRecord> {
  readonly type: string | null;
  /** There is no longer a payload to deliver. */
  readonly payloadErased: boolean;
  /** Id of the webhook that an event of our own is about, which never gets it. @default it is the tenant's own event */
  readonly aboutId?: string | null;
  readonly records: readonly Found[];
}

/**
 * What a replay of one event changes. For each registered webhook that it targets, that is not disabled, takes the type and is
 * not the one that an event of our own is about:
 *
 *   no record of the event ──▶ added: PENDING, its first run
 *   DELIVERED, FAILED ──▶ restarted: PENDING, the next run (the replay of what has failed leaves DELIVERED alone)
 *   PENDING ──▶ restarted: the next run begins at once, and supersedes the one that waits
 *
 * A record of a webhook that is gone, or of none, if the replay targets it:
 *
 *   FAILED, SKIPPED ──a record is added──▶ replaced: it makes room
 *      └──none is──▶ left as it is
 *
 * If the replay targets one kind of failure, a record is added only in place of one that failed so: for the webhook that the
 * replay is for; otherwise for the same URL, registered again, or for all if the event had found no webhook. Nobody else gets
 * what was not meant for them.
 *
 * A FAILED record of a webhook that is disabled, or no longer takes the type, is left as it is. So are all records of an
 * event whose payload was erased.
 */
export interface Requeueing<Found extends ReplayedRecord = ReplayedRecord> {
  readonly added: readonly (WaitingRecord & Returnable)[];
  readonly restarted: readonly (Found & Returnable)[];
  /** When the restarted ones are due. */
  readonly nextAttemptAt: number;
  /** For each waiting run that began with a replay and ends here: that replay. */
  readonly superseded: readonly number[];
  readonly replaced: readonly Found[];
  /** How many deliveries are not made: of FAILED records that nothing delivers, and all those of an event without its payload. */
  readonly skipped: number;
  /** Webhooks that the event goes to again, in their order. */
  readonly webhookKeys: readonly number[];
  readonly counters: Counters;
  readonly failures: readonly FailureMove[];
}

/** What a replay asks for of each event that it takes. */
export interface Replaying {
  readonly kind: ReplayKind;
  /** Keys of the only webhook that it targets, which may have been registered several times; null: all webhooks. */
  readonly webhookKeys: readonly number[] | null;
  /** The failures that it targets; null: records in any state. */
  readonly failure: FailureSelection | null;
}

const hasFailedSo = ({ errorCode, statusCode }: ReplayedRecord, { code, status }: FailureSelection): boolean =>
  errorCode === code && (status === null || statusCode === status);

/** What a replay of one event starts again (rules, section 10). */
export function requeue<Found extends ReplayedRecord>(
  { webhooks, counters }: Pick<TenantState, "webhooks" | "counters">,
  { type, payloadErased, aboutId = null, records }: ReplayedEvent<Found>,
  { kind, webhookKeys, failure }: Replaying,
  moment: Moment,
): Requeueing<Found> {
  const recordOf = (webhookKey: number) => records.find((record) => record.webhookKey === webhookKey);
  const isRegistered = ({ webhookKey }: ReplayedRecord) => webhooks.some(({ key }) => key === webhookKey);
  const isFor = (webhookKey: number | null) =>
    webhookKeys === null || (webhookKey !== null && webhookKeys.includes(webhookKey));
  // What failed so elsewhere is the business of the webhook that the replay is for only if neither it nor an earlier one of the same
  // URL has had the event.
  const mayStandIn = failure !== null && !records.some((record) => isFor(record.webhookKey));
  const isMeant = (record: Found) =>
    (isFor(record.webhookKey) || (mayStandIn && !isRegistered(record))) &&
    (failure === null || hasFailedSo(record, failure));
  const mayReplace = ({ url }: Pick<Webhook, "url">, record: Found) =>
    failure === null || webhookKeys !== null || record.webhookKey === null || record.url === url;

  const takers = webhooks.filter(
    (webhook) => isEnabled(webhook) && takes(webhook.eventTypes, type) && webhook.id !== aboutId,
  );
  const stranded = records.filter((record) => record.state === "FAILED" && !isRegistered(record) && isMeant(record));
  const meant = takers.filter((webhook) => {
    const record = recordOf(webhook.key);
    if (record) return isMeant(record) && !(kind === "failed" && record.state === "DELIVERED");
    return isFor(webhook.key) && (failure === null || stranded.some((each) => mayReplace(webhook, each)));
  });
  const receivers = payloadErased ? [] : meant;
  const newcomers = receivers.filter(({ key }) => !recordOf(key));
  const restarted = receivers.flatMap(({ key }) => {
    const record = recordOf(key);
    return record ? [{ ...record, returnsTo: beforeRun(record, moment) }] : [];
  });
  const superseded = restarted.flatMap(({ state, replayKey }) => (state === "PENDING" ? (replayKey ?? []) : []));
  const isRestarted = ({ key }: ReplayedRecord) => restarted.some((record) => record.key === key);
  const passedOver = records.filter((record) => record.state === "SKIPPED" && !isRestarted(record));
  const replaced = [...stranded, ...passedOver].filter((record) =>
    newcomers.some((webhook) => mayReplace(webhook, record)),
  );
  const left = records.filter(
    (record) => record.state === "FAILED" && isMeant(record) && !isRestarted(record) && !replaced.includes(record),
  );
  // A record that replaces another stands in for it, even if the replay is cancelled: no event is left without one.
  const added = fanOut(newcomers, moment).map((record) => {
    const earlier = replaced.find((each) => mayReplace(record.webhook, each));
    const returnsTo: RecordBefore = earlier ? inPlaceOf(earlier, moment) : { state: "NONE" };
    return { ...record, returnsTo };
  });

  let counted = counters;
  for (const { state } of added) counted = enterState(counted, state);
  for (const { state } of restarted) counted = moveState(counted, state, "PENDING");
  for (const { state } of replaced) counted = leaveState(counted, state);

  return {
    added,
    restarted,
    nextAttemptAt: moment.now,
    superseded,
    replaced,
    skipped: left.length + (payloadErased ? meant.filter(({ key }) => recordOf(key)?.state !== "FAILED").length : 0),
    webhookKeys: receivers.map(({ key }) => key),
    counters: counted,
    failures: [
      ...restarted.flatMap((record) =>
        record.state === "FAILED" ? movesOf(record, { ...record, state: "PENDING" }) : [],
      ),
      ...replaced.flatMap((record) => movesOf(record, null)),
    ],
  };
}

/** It has ended as that one did, and belongs to a group of its own webhook. */
function inPlaceOf(record: ReplayedRecord, moment: Moment): RecordBefore {
  const before = beforeRun(record, moment);
  return before.state === "NONE" ? before : { ...before, failureKey: null };
}
