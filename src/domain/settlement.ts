import type { DeliveryState, DueDelivery } from "./delivery.ts";
import { type Failure, type FailureCode, webhookDisabled, webhookRemoved } from "./failure.ts";
import type { RegisteredWebhook } from "./tenant-state.ts";
import { isEnabled } from "./webhook.ts";

/** What follows an attempt. */
export type NextStep = { kind: "delivered" } | { kind: "failed" } | { kind: "retry"; at: number };

/** An attempt that was made, and what follows from it if its webhook is registered. */
export interface JudgedAttempt {
  readonly delivery: Pick<DueDelivery, "webhookKey" | "run">;
  readonly attempt: {
    readonly error: string | null;
    readonly errorCode: FailureCode | null;
    readonly statusCode: number | null;
  };
  readonly next: NextStep;
}

/** The state in which a record is found. */
export interface FoundRecord {
  readonly state: DeliveryState;
  readonly run: number;
  readonly errorCode: FailureCode | null;
  /** Key of the group that counts its failure. */
  readonly failureKey: number | null;
  /** It was taken for abandoned, and has been given out again. */
  readonly isElsewhere?: boolean;
}

/** The record of a delivery as the queue gave it out, if it has never failed. */
export const asQueued = ({ run }: Pick<DueDelivery, "run">): FoundRecord => ({
  state: "PENDING",
  run,
  errorCode: null,
  failureKey: null,
});

/**
 * What an attempt does to its record. It settles the run that it belongs to, once:
 *
 *   PENDING ──acknowledged──▶ DELIVERED
 *      │ ▲ └──permanent, schedule used up, retry for a removed or disabled webhook──▶ FAILED
 *      └─┘ retry
 *
 *   FAILED as its webhook was removed or disabled, with this attempt under way
 *      ├──acknowledged──▶ DELIVERED, and the replay that counted a failure is corrected
 *      └──anything else──▶ FAILED, with the failure of the attempt
 *
 * Otherwise a newer run has begun, the run has ended, or the record was given out again and that attempt will say what
 * follows (an acknowledgement counts anyway): `superseded`, the record counts the attempt and stays. If the record no longer
 * exists, the attempt is `gone`. All attempts are logged.
 */
export interface RecordChange {
  readonly kind: "settled" | "superseded" | "gone";
  /** What the record becomes; null: it stays as it is. */
  readonly becomes: SettledRecord | null;
  /** What the replay that began the run counts. */
  readonly replay: "delivered" | "failed" | "corrected" | null;
  /** The webhook is no longer registered: a record that continues for its URL counts the attempt too. */
  readonly isLate: boolean;
}

export interface SettledRecord {
  readonly state: DeliveryState;
  readonly nextAttemptAt: number | null;
  readonly finishedAt: number | null;
  /** About the latest failed attempt, or the end without one; all null after a success. */
  readonly errorReason: string | null;
  readonly errorCode: FailureCode | null;
  readonly statusCode: number | null;
}

/** Why a record may end although an attempt of it is under way. */
const givenUpWith: readonly FailureCode[] = [webhookRemoved.code, webhookDisabled.code];

/** What an attempt does to its record (rules, sections 7 and 8). @param found null: the record no longer exists */
export function settle(
  found: FoundRecord | null,
  webhooks: readonly RegisteredWebhook[],
  { delivery, attempt, next }: JudgedAttempt,
  now: number,
): RecordChange {
  const webhook = webhooks.find(({ key }) => key === delivery.webhookKey);
  const isLate = !webhook;
  if (!found) return { kind: "gone", becomes: null, replay: null, isLate };
  const isWaiting = found.state === "PENDING";
  const isGivenUp = found.state === "FAILED" && found.errorCode !== null && givenUpWith.includes(found.errorCode);
  if (found.run !== delivery.run || !(isWaiting || isGivenUp)) {
    return { kind: "superseded", becomes: null, replay: null, isLate };
  }
  if (found.isElsewhere && next.kind !== "delivered")
    return { kind: "superseded", becomes: null, replay: null, isLate };
  if (next.kind === "delivered") {
    return { kind: "settled", becomes: delivered(now), replay: isWaiting ? "delivered" : "corrected", isLate };
  }
  if (next.kind === "retry" && isWaiting && webhook && isEnabled(webhook)) {
    return { kind: "settled", becomes: failedWith(attempt, "PENDING", next.at, null), replay: null, isLate };
  }
  const isRemoved = isLate || (isGivenUp && found.errorCode === webhookRemoved.code);
  const without = giveUp(isRemoved ? webhookRemoved : webhookDisabled, now);
  const becomes = next.kind === "retry" ? without : failedWith(attempt, "FAILED", null, now);
  return { kind: "settled", becomes, replay: isWaiting ? "failed" : null, isLate };
}

/** A record for which no more attempts will be made. */
export const giveUp = ({ code, reason }: Failure, now: number): SettledRecord => ({
  state: "FAILED",
  nextAttemptAt: null,
  finishedAt: now,
  errorReason: reason,
  errorCode: code,
  statusCode: null,
});

const delivered = (now: number): SettledRecord => ({
  state: "DELIVERED",
  nextAttemptAt: null,
  finishedAt: now,
  errorReason: null,
  errorCode: null,
  statusCode: null,
});

const failedWith = (
  { error, errorCode, statusCode }: JudgedAttempt["attempt"],
  state: DeliveryState,
  nextAttemptAt: number | null,
  finishedAt: number | null,
): SettledRecord => ({ state, nextAttemptAt, finishedAt, errorReason: error, errorCode, statusCode });
