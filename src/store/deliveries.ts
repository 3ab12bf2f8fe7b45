import type { AnswerHead, DeliveryRef, DueDelivery } from "../domain/delivery.ts";
import type { FailureCode } from "../domain/failure.ts";
import type { NextStep } from "../domain/settlement.ts";
import type { WebhookRef } from "../domain/webhook.ts";

/** A webhook with unowned pending deliveries, and when the first of them is due. */
export interface DueLane extends WebhookRef {
  readonly firstDueAt: number;
}

/** Due times of deliveries: later than `after`, and no later than `until`. */
export interface DueRange {
  readonly after: number;
  readonly until: number;
}

/** `nextDueAt`: when the webhook's next unowned delivery is due; null when there is none. */
export interface Claimed {
  readonly due: readonly DueDelivery[];
  readonly nextDueAt: number | null;
}

export interface Settlement {
  readonly delivery: DueDelivery;
  readonly attempt: {
    readonly startedAt: number;
    readonly durationMs: number;
    readonly statusCode: number | null;
    readonly error: string | null;
    readonly errorCode: FailureCode | null;
    readonly responseBody: Uint8Array | null;
    readonly answerHead: AnswerHead | null;
  };
  readonly next: NextStep;
}

/**
 * Identifies a logged attempt. It includes the tenant and the event so that a backend whose tables are partitioned by them
 * finds the attempt in one step.
 */
export interface AttemptRef {
  readonly tenantKey: number;
  readonly eventSeq: number;
  readonly key: number;
}

/** `superseded`: a newer run has begun, so the attempt was only logged. `gone`: the record or its tenant no longer exists. */
export interface Settled {
  readonly kind: "settled" | "superseded" | "gone";
  /** Null when nothing was logged. */
  readonly attempt: AttemptRef | null;
  /** The delivery was the head of its line (`domain/order.ts`), so the webhook's next one is due now. */
  readonly hasReleased?: boolean;
}

/**
 * How many attempts of one record the log keeps. A schedule makes eight; without a limit, replaying one event over and over
 * fills all the space there is.
 */
export const keptAttempts = 100;

/**
 * A pending delivery is owned from the moment it is accepted or claimed until it is settled or released; until then `claim`
 * gives it to no one else. Nothing else ends ownership: not the removal of its webhook or its account, and not a replay, whose
 * run can be claimed once the attempt of the previous run has been settled. After a restart nothing is owned.
 */
export interface DeliveryVerbs {
  /** Other processes write to the same store, so there may be something to discover at any time. */
  readonly isShared: boolean;
  /**
   * Every registered webhook with unowned pending deliveries, found without scanning those: whenever they are due, or only
   * if they are due within the range. Webhooks of an account that the operator has suspended are included; paused and
   * disabled ones are not.
   */
  discover(range?: DueRange): Promise<DueLane[]>;
  /**
   * Takes due, unowned deliveries of one webhook, longest waiting first. For a removed, disabled or paused webhook, and for an
   * account that is deleted or that the operator has suspended, there are none, and `nextDueAt` is null. What waits for a
   * cancelled replay cannot be claimed: it becomes what it was before (`returnCancelled`).
   */
  claim(webhook: WebhookRef, now: number, limit: number): Promise<Claimed>;
  /** Gives back deliveries that will not be attempted: they can be claimed as they stand. Those not owned are skipped. */
  release(deliveries: readonly DeliveryRef[]): Promise<void>;
  /**
   * Logs the attempt and moves the record on, if the run is still the current one; whatever the outcome, the delivery is no
   * longer owned. If the next step is a retry but the webhook is removed or disabled, the record fails instead.
   * For a deleted tenant the result is `gone`. The latest `keptAttempts` attempts of a record are kept. When the store may not
   * grow, the body and the head of the response are left out.
   * @param isAwaited false: nothing waits for it, so it may be written some milliseconds later, with others. @default true
   */
  settle(settlement: Settlement, isAwaited?: boolean): Promise<Settled>;
  /**
   * Replaces the response body of a logged attempt, because the rest of it arrived after the attempt was settled. Does nothing
   * when the attempt or its tenant is gone, or the store may not grow.
   */
  completeResponseBody(attempt: AttemptRef, responseBody: Uint8Array): Promise<void>;
  /**
   * Takes about `limit` records held back for webhooks that are no longer ordered out of their lines and makes them due now.
   * @returns the webhooks to wake; null when there are no such records
   */
  endOrder(limit: number): Promise<readonly WebhookRef[] | null>;
  /** Turns about `limit` waiting records of removed and disabled webhooks to FAILED; true while there are more. */
  failUndeliverable(limit: number): Promise<boolean>;
  /**
   * Turns about `limit` unowned waiting records to FAILED with `server_restored`, whatever the state of their webhooks and
   * accounts. For a restored store that does not send anything yet; replays that records wait for are cancelled first.
   * @returns how many; 0 when there are none
   */
  failPending(limit: number): Promise<number>;
  queueDepth(): Promise<QueueDepth>;
}

export interface QueueDepth {
  /**
   * All pending deliveries, except those of accounts that are paused or about to be erased. SQLite also leaves out an account all
   * of whose pending deliveries are for removed and disabled webhooks, until `failUndeliverable` has turned them to FAILED.
   */
  readonly pending: number;
  /**
   * When the longest waiting one was due, leaving out those of paused, removed and disabled webhooks, too; null: none waits.
   * PostgreSQL finds only those that nobody owns, so what a node holds or has in flight is left out.
   */
  readonly oldestDueAt: number | null;
}
