import type { FailureCode } from "./failure.ts";
import type { Tier } from "./tenant.ts";
import type { TraceContext } from "./trace-context.ts";
import type { WebhookLimits, WebhookRef } from "./webhook.ts";

/**
 * One event for one webhook: the public "event record" and the row of the queue.
 *
 *            2xx
 *   PENDING ─────▶ DELIVERED
 *     │  ▲ retry         │
 *     │  └───────────────┤ replay: the next run
 *     └────────▶ FAILED ─┘
 *      permanent, schedule used up, webhook removed or disabled, server restored
 *
 * SKIPPED is the only record of an event that no webhook takes. A replay puts others in its place once one does.
 */
export type DeliveryState = "PENDING" | "DELIVERED" | "FAILED" | "SKIPPED";

/** In the order of the numbers that stores keep them as. */
export const deliveryStates: readonly DeliveryState[] = ["PENDING", "DELIVERED", "FAILED", "SKIPPED"];

/** Identifies a delivery: its key alone does not say where it is kept. */
export interface DeliveryRef extends WebhookRef {
  readonly eventSeq: number;
  /** 0: a test, which has no record. */
  readonly deliveryKey: number;
}

/** A delivery that is due, with everything one attempt needs. */
export interface DueDelivery extends DeliveryRef {
  readonly tenantId: string;
  /** The plan whose limits apply to the account. */
  readonly tier: Tier;
  readonly url: string;
  /** Its webhook's. */
  readonly limits: WebhookLimits;
  /** Its webhook's headers. */
  readonly sealedHeaders: Uint8Array | null;
  readonly eventId: string;
  readonly payload: Uint8Array;
  /** Null: its event belongs to no trace. */
  readonly trace: TraceContext | null;
  /** Grows with every replay; an attempt settles only its own run. */
  readonly run: number;
  /** Attempts that this run has had. */
  readonly attemptsInRun: number;
  /** Attempts over all runs. */
  readonly attempts: number;
  /** The replay that began this run; a `ReplayRef` with the account's. */
  readonly replayKey: number | null;
  readonly replayGroupId: string | null;
  /** The line that it is the head of (`order.ts`); null: it is in none. */
  readonly orderHash: number | null;
  /** Who became its owner with this, in a store that several processes share. Of meaning to the store alone. */
  readonly owner?: number;
}

/** Who answered, and with which headers: whole ones, as many as are kept. */
export interface AnswerHead {
  /** IP address of the receiver; null: the connection had ended. */
  readonly address: string | null;
  readonly headers: readonly (readonly [name: string, value: string])[];
  /** There were more. */
  readonly isCut: boolean;
}

/** One HTTP POST, as `GET /v1/events/{id}/attempts` shows it. */
export interface Attempt {
  readonly targetWebhook: string;
  /** From 1; goes on counting through replays. */
  readonly number: number;
  readonly startedAt: number;
  readonly durationMs: number;
  readonly statusCode: number | null;
  readonly error: string | null;
  /** As `codeOfAttempt` gives it: null also if `error` predates the codes and there was no answer. */
  readonly errorCode: FailureCode | null;
  readonly responseBody: string;
  /** For an answer that was no acknowledgement; null for all others, and where it was not kept. */
  readonly answerHead: AnswerHead | null;
  /** As `cutLabel` gives it. */
  readonly replayGroupId: string | null;
  readonly isReplayGroupIdCut: boolean;
}
