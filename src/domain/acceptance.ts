import { type ApiKey, isActive } from "./credentials.ts";
import type { DueDelivery } from "./delivery.ts";
import { DomainError, rateLimited, unavailable } from "./errors.ts";
import { takes } from "./event-types.ts";
import { type Failure, noWebhook, webhookDisabled } from "./failure.ts";
import { quotaOf } from "./limits.ts";
import type { Moment } from "./moment.ts";
import { isToldOf, type OwnEventType } from "./own-events.ts";
import { accountGone, apiKeyRefused, refusalOfIngestion } from "./standing.ts";
import { type Tenant, tierInForce } from "./tenant.ts";
import { openMonth, type RegisteredWebhook, type TenantState } from "./tenant-state.ts";
import { isEnabled, limitsOf } from "./webhook.ts";

/** Rules, section 6: an idempotency key is remembered for 24 hours. */
export const idempotencyLifetimeMs = 24 * 60 * 60 * 1000;

/** Events submitted together, to be accepted all or none. */
export interface Submission {
  /** The type of each event; null: it has none. */
  readonly types: readonly (string | null)[];
  /** The key that it came with, as it is now; null: the account no longer has such a key. */
  readonly apiKey: Pick<ApiKey, "expiresAt"> | null;
  /** The request's, if it has an idempotency key. */
  readonly fingerprint: Uint8Array | null;
  /** What its idempotency key was used for before; null: nothing known. */
  readonly earlier: EarlierAnswer | null;
  /** False when the disk is below its floor. */
  readonly mayGrow: boolean;
}

/** The earlier request that was accepted with an idempotency key. */
export interface EarlierAnswer {
  readonly fingerprint: Uint8Array;
  readonly eventIds: readonly string[];
  readonly createdAt: number;
}

/**
 *   submitted ──the account is gone, or its API key has ended since──▶ refused
 *      ├──its idempotency key, used within 24 hours──▶ repeated, or refused if it was another request
 *      ├──account, quota or disk say no──▶ refused
 *      └──▶ accepted, and of each event
 *              ├──webhooks take its type──▶ a record for each of them: PENDING, or FAILED where the webhook is disabled
 *              ├──none of those that are registered does──▶ one record, SKIPPED
 *              └──none is registered──▶ one record, FAILED for want of a webhook
 */
export type Acceptance =
  | {
      readonly kind: "accepted";
      /** For each event. */
      readonly records: readonly (readonly NewRecord[])[];
    }
  | { readonly kind: "repeated"; readonly eventIds: readonly string[] }
  | { readonly kind: "refused"; readonly error: DomainError };

/** A record of an event that had none for its webhook. This is its first run. */
export type NewRecord = WaitingRecord | UndeliverableRecord | SkippedRecord;

export interface WaitingRecord {
  readonly state: "PENDING";
  readonly webhook: RegisteredWebhook;
  readonly nextAttemptAt: number;
}

export interface UndeliverableRecord {
  readonly state: "FAILED";
  /** Null: none is registered. */
  readonly webhook: RegisteredWebhook | null;
  readonly finishedAt: number;
  readonly failure: Failure;
}

export interface SkippedRecord {
  readonly state: "SKIPPED";
  readonly webhook: null;
  readonly finishedAt: number;
}

/** Decides whether events are accepted, and which records each of them gets (rules, sections 3, 4, 6 and 7, in that order). */
export function accept(state: TenantState, submission: Submission, moment: Moment): Acceptance {
  if (state.gone) return { kind: "refused", error: accountGone() };
  const { apiKey, fingerprint, earlier } = submission;
  if (!apiKey || !isActive(apiKey, moment.now)) return { kind: "refused", error: apiKeyRefused() };
  if (fingerprint && earlier && moment.now - earlier.createdAt < idempotencyLifetimeMs) {
    const isSame = Buffer.compare(earlier.fingerprint, fingerprint) === 0;
    return isSame
      ? { kind: "repeated", eventIds: earlier.eventIds }
      : { kind: "refused", error: idempotencyConflict() };
  }
  const error =
    refusalOfIngestion(state.tenant) ??
    refusalOfQuota(state, submission.types.length, moment) ??
    refusalOfStorage(state.tenant) ??
    (submission.mayGrow ? null : noRoom());
  if (error) return { kind: "refused", error };
  return { kind: "accepted", records: recordsOfEach(submission.types, state.webhooks, moment) };
}

/** Events of one type get the same records, so a batch works them out once per type. */
function recordsOfEach(
  types: readonly (string | null)[],
  webhooks: readonly RegisteredWebhook[],
  moment: Moment,
): readonly (readonly NewRecord[])[] {
  const known = new Map<string | null, readonly NewRecord[]>();
  return types.map((type) => {
    let records = known.get(type);
    if (!records) {
      records = recordsOf(type, webhooks, moment);
      known.set(type, records);
    }
    return records;
  });
}

function recordsOf(type: string | null, webhooks: readonly RegisteredWebhook[], moment: Moment): readonly NewRecord[] {
  const finishedAt = moment.orderedNow;
  if (webhooks.length === 0) return [{ state: "FAILED", webhook: null, finishedAt, failure: noWebhook }];
  const takers = webhooks.filter(({ eventTypes }) => takes(eventTypes, type));
  if (takers.length === 0) return [{ state: "SKIPPED", webhook: null, finishedAt }];
  if (takers.every(isEnabled)) return fanOut(takers, moment);
  return takers.flatMap((webhook): NewRecord[] =>
    isEnabled(webhook)
      ? fanOut([webhook], moment)
      : [{ state: "FAILED", webhook, finishedAt, failure: webhookDisabled }],
  );
}

/** What the program tells an account about a webhook. */
export interface OwnEvent {
  readonly type: OwnEventType;
  readonly aboutKey: number;
}

/**
 * The records of an event of our own (rules, section 14). None: no webhook asks for it, or there is no room, and it is
 * not stored. Neither the quota nor the standing of the account matters.
 */
export function acceptOwn(
  { gone, webhooks }: Pick<TenantState, "gone" | "webhooks">,
  { type, aboutKey }: OwnEvent,
  mayGrow: boolean,
  moment: Moment,
): readonly WaitingRecord[] {
  if (gone || !mayGrow) return [];
  return fanOut(
    webhooks.filter((webhook) => isToldOf(webhook, type, aboutKey)),
    moment,
  );
}

/** The records of an event for webhooks that have none for it yet. */
export function fanOut(webhooks: readonly RegisteredWebhook[], { now }: Moment): WaitingRecord[] {
  // Due by the clock, not by the ingestion time, which runs ahead if the clock was set back.
  return webhooks.map((webhook) => ({ state: "PENDING", webhook, nextAttemptAt: now }));
}

/** The first delivery of a new record. */
export const firstDelivery = (
  tenant: Tenant,
  webhook: RegisteredWebhook,
  event: Pick<DueDelivery, "deliveryKey" | "eventSeq" | "eventId" | "payload" | "trace" | "orderHash">,
): DueDelivery => ({
  deliveryKey: event.deliveryKey,
  tenantKey: tenant.key,
  tenantId: tenant.id,
  tier: tierInForce(tenant),
  webhookKey: webhook.key,
  url: webhook.url,
  limits: limitsOf(webhook),
  sealedHeaders: webhook.sealedHeaders,
  eventSeq: event.eventSeq,
  eventId: event.eventId,
  payload: event.payload,
  trace: event.trace,
  run: 1,
  attemptsInRun: 0,
  attempts: 0,
  replayKey: null,
  replayGroupId: null,
  orderHash: event.orderHash,
});

/** Rules, section 4: over the quota, events get 429 until the end of the month; a batch fits whole or is refused whole. */
function refusalOfQuota(
  { tenant, counters }: TenantState,
  events: number,
  { now, orderedNow }: Moment,
): DomainError | null {
  const quota = quotaOf(tenant);
  // A month that has begun in the meantime only makes more room: nearly every event needs no look at the calendar.
  if (counters.eventsInMonth + events <= quota) return null;
  // By the ingestion time that the events would get: it is ahead of the clock if that was set back over the end of a month.
  // None are left of a quota that was lowered below what is used.
  const left = Math.max(0, quota - openMonth(counters, orderedNow).eventsInMonth);
  if (events <= left) return null;
  const date = new Date(orderedNow);
  const monthEnd = Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1);
  return rateLimited(
    `All${left === 0 ? "" : ` but ${left}`} of the account's ${quota} events for this month are used; wait until next month or ask for a higher quota.`,
    "quota_exceeded",
    (monthEnd - now) / 1000,
  );
}

/** Room comes when something old has gone or the operator has allowed more; nobody knows when. */
const storageRetrySeconds = 3600;

const refusalOfStorage = ({ storageFullAt, ownStorageBytes }: Tenant): DomainError | null =>
  storageFullAt === null || ownStorageBytes === null
    ? null
    : rateLimited(
        `The account's events take more than the ${ownStorageBytes} bytes that it may store; ask for more storage or a shorter retention.`,
        "storage_exceeded",
        storageRetrySeconds,
      );

/** The disk is below its floor. */
export const noRoom = () =>
  unavailable("The server's disk is almost full; retry the request later.", "storage_full", 30);

/** Rules, section 6. */
export const idempotencyConflict = () =>
  new DomainError({
    kind: "idempotency_conflict",
    code: "idempotency_key_reused",
    message: "Idempotency-Key was already used for another request in the last 24 hours; use a new key.",
  });
