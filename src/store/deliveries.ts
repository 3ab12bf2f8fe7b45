import type { AnswerHead, DeliveryRef, DueDelivery } from "../domain/delivery.ts";
import type { FailureCode } from "../domain/failure.ts";
import type { NextStep } from "../domain/settlement.ts";
import type { WebhookRef } from "../domain/webhook.ts";

/** A webhook with pending deliveries that nobody owns, and when the first of them is due. */
export interface DueLane extends WebhookRef {
  readonly firstDueAt: number;
}

/** Times at which deliveries are due: later than `after`, and no later than `until`. */
export interface DueRange {
  readonly after: number;
  readonly until: number;
}

/** `nextDueAt`: when the next delivery of the webhook is due that nobody owns; null: there is none. */
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
 * What a logged attempt is found by. The tenant and the event are there so that a backend whose tables are divided by them
 * finds it in one step.
 */
export interface AttemptRef {
  readonly tenantKey: number;
  readonly eventSeq: number;
  readonly key: number;
}

/** `superseded`: a newer run has begun, so the attempt went to the log only. `gone`: the record or its tenant is no more. */
export interface Settled {
  readonly kind: "settled" | "superseded" | "gone";
  /** Null when nothing was logged. */
  readonly attempt: AttemptRef | null;
  /** The delivery was the head of its line (`domain/order.ts`), and the next one of the webhook is due. */
  readonly hasReleased?: boolean;
}

/**
 * Attempts of one record in the log. A schedule makes eight; replays of one event, again and again, made as many as there
 * was room.
 */
export const keptAttempts = 100;

/**
 * A pending delivery is owned from the moment in which it is accepted or claimed until it is settled or released; meanwhile
 * `claim` gives it to nobody. Nothing else ends that: not the end of its webhook or its account, and not a replay, whose run
 * can be claimed once the attempt of the one before has been settled. After a restart nothing is owned.
 */
export interface DeliveryVerbs {
  /** Others write to the same store, so there may be something to discover at any time. */
  readonly isShared: boolean;
  /**
   * Every registered webhook with pending deliveries that nobody owns, without a walk through them: whenever they are due,
   * or only those that are in a range. Those of an account that the operator has suspended are among them, those that are paused
   * or disabled are not.
   */
  discover(range?: DueRange): Promise<DueLane[]>;
  /**
   * Takes deliveries of one webhook that are due and nobody's, the longest waiting first. A removed, disabled or paused
   * webhook, a deleted account and one that the operator has suspended have none, and null. What waits for a cancelled
   * replay is given to nobody: it becomes what it was (`returnCancelled`).
   */
  claim(webhook: WebhookRef, now: number, limit: number): Promise<Claimed>;
  /** Gives back what no attempt will be made for: it can be claimed as it stands. What is not owned is passed over. */
  release(deliveries: readonly DeliveryRef[]): Promise<void>;
  /**
   * Logs the attempt and moves the record on, if the run is still the current one; whatever it says, the delivery is not
   * owned any more. A retry for a removed or disabled webhook fails.
   * A deleted tenant is `gone`. Of the attempts of a record the latest `keptAttempts` stay. When the store may not
   * grow, the body and the head of the answer are left out.
   * @param isAwaited false: nothing waits for it, so it may be written some milliseconds later, with others. @default true
   */
  settle(settlement: Settlement, isAwaited?: boolean): Promise<Settled>;
  /**
   * Replaces the response body of a logged attempt: the rest of it came after the attempt was settled. Does nothing when
   * the attempt or its tenant is gone, or the store may not grow.
   */
  completeResponseBody(attempt: AttemptRef, responseBody: Uint8Array): Promise<void>;
  /**
   * About `limit` records that are held back for webhooks that are not ordered any more are due now, and stand in no line.
   * @returns the webhooks to wake; null: there are none
   */
  endOrder(limit: number): Promise<readonly WebhookRef[] | null>;
  /** Turns about `limit` waiting records of removed and of disabled webhooks to FAILED; true while there are more. */
  failUndeliverable(limit: number): Promise<boolean>;
  /**
   * Turns about `limit` records that wait, and that nobody owns, to FAILED with `server_restored`, whatever their webhooks and
   * accounts may do. For a restored store from which nothing goes out yet; what waits for a replay is cancelled before.
   * @returns how many; 0: there are none
   */
  failPending(limit: number): Promise<number>;
  queueDepth(): Promise<QueueDepth>;
}

export interface QueueDepth {
  /** Deliveries in all, without those of accounts that pause or will be erased. */
  readonly pending: number;
  /** When the longest waiting one was due, also without those of paused webhooks; null: none waits. */
  readonly oldestDueAt: number | null;
}
