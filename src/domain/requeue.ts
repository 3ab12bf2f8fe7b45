import { fanOut, type WaitingRecord } from "./acceptance.ts";
import type { DeliveryState } from "./delivery.ts";
import type { Moment } from "./moment.ts";
import type { ReplayKind } from "./replay.ts";
import { type Counters, enterState, leaveState, moveState, type TenantState } from "./tenant-state.ts";

/** A record of an event that is replayed. */
export interface ReplayedRecord {
  readonly key: number;
  /** Null: the event found no webhook. */
  readonly webhookKey: number | null;
  readonly state: DeliveryState;
  readonly attempts: number;
  /** The replay that began its run. */
  readonly replayKey: number | null;
}

/**
 * What a replay of one event changes. For each registered webhook that it is for:
 *
 *   no record of the event ──▶ added: PENDING, its first run
 *   DELIVERED, FAILED ──▶ restarted: PENDING, the next run (the replay of what has failed leaves DELIVERED alone)
 *   PENDING ──▶ restarted: the next run begins at once, and supersedes the one that waits
 *
 * A record of a webhook that is gone, or of none, if the replay is for that:
 *
 *   FAILED ──a record is added──▶ replaced: it makes room
 *      └──none is──▶ skipped
 */
export interface Requeueing {
  readonly added: readonly WaitingRecord[];
  readonly restarted: readonly ReplayedRecord[];
  /** When the restarted ones are due. */
  readonly nextAttemptAt: number;
  /** For each waiting run that began with a replay and ends here: that replay. */
  readonly superseded: readonly number[];
  readonly replaced: readonly ReplayedRecord[];
  /** How many records are left as they are although nothing delivers them. */
  readonly skipped: number;
  /** Where the event goes again, in the order of the webhooks. */
  readonly webhookKeys: readonly number[];
  readonly counters: Counters;
}

/** What a replay asks of each event that it takes. */
export interface Replaying {
  readonly kind: ReplayKind;
  /** Of the webhook that it is for alone, as which it may have been registered several times; null: it is for all. */
  readonly webhookKeys: readonly number[] | null;
}

/** What a replay starts anew of one event (rules, section 10). */
export function requeue(
  { webhooks, counters }: Pick<TenantState, "webhooks" | "counters">,
  records: readonly ReplayedRecord[],
  { kind, webhookKeys }: Replaying,
  moment: Moment,
): Requeueing {
  const recordOf = (webhookKey: number) => records.find((record) => record.webhookKey === webhookKey);
  const isRegistered = ({ webhookKey }: ReplayedRecord) => webhooks.some(({ key }) => key === webhookKey);
  const isFor = (webhookKey: number | null) =>
    webhookKeys === null || (webhookKey !== null && webhookKeys.includes(webhookKey));

  const receivers = webhooks.filter(
    ({ key }) => isFor(key) && !(kind === "failed" && recordOf(key)?.state === "DELIVERED"),
  );
  const added = fanOut(
    receivers.filter(({ key }) => !recordOf(key)),
    moment,
  );
  const restarted = receivers.flatMap(({ key }) => recordOf(key) ?? []);
  const superseded = restarted.flatMap(({ state, replayKey }) => (state === "PENDING" ? (replayKey ?? []) : []));
  const stranded = records.filter(
    (record) => record.state === "FAILED" && !isRegistered(record) && isFor(record.webhookKey),
  );
  const replaced = added.length > 0 ? stranded : [];

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
    skipped: stranded.length - replaced.length,
    webhookKeys: receivers.map(({ key }) => key),
    counters: counted,
  };
}
