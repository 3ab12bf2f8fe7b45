import type { OwnEvent } from "../domain/acceptance.ts";
import type { Act, Origin } from "../domain/audit.ts";
import type { Change } from "../domain/change.ts";
import type { ApiKey, SigningKey, SigningSecret } from "../domain/credentials.ts";
import type { Attempt, DeliveryRef, DueDelivery } from "../domain/delivery.ts";
import type { EventRecord, RecordFilters } from "../domain/event.ts";
import type { FailureCode } from "../domain/failure.ts";
import type { DeliveredTypes } from "../domain/failure-groups.ts";
import type { OwnLimits } from "../domain/limits.ts";
import type { ListedReplay, Replay, ReplayFilter, ReplayKind, ReplayPreview, ReplayRef } from "../domain/replay.ts";
import type { ReplayLimits } from "../domain/replay-phase.ts";
import type { SuspensionCause, Tenant, Tier } from "../domain/tenant.ts";
import type { TraceContext } from "../domain/trace-context.ts";
import type { Webhook, WebhookRef } from "../domain/webhook.ts";
import type { ListedWebhook } from "../domain/webhook-list.ts";
import type { AuditVerbs } from "./audit.ts";
import type { BillingVerbs, NewVerification } from "./billing.ts";
import type { Cursor } from "./cursor.ts";
import type { DeliveryVerbs } from "./deliveries.ts";
import type { FailingWebhookVerbs } from "./failing-webhooks.ts";
import type { FailureVerbs } from "./failures.ts";
import type { InboxVerbs } from "./inbox.ts";
import type { MailVerbs } from "./mail.ts";
import type { RetentionVerbs } from "./retention.ts";
import type { SealingVerbs } from "./sealed.ts";
import type { StatVerbs } from "./stats.ts";

/**
 * The seam to storage. Each verb is one whole transaction, and no transaction leaves it.
 *
 * Error contract, for every verb: a `DomainError` of kind `unavailable` means that nothing was written and a repetition
 * is safe (no room, a fault of the storage); other `DomainError`s are the ones named at the verb and write nothing either.
 * A promise of a write resolves once it is durable: it outlives the process and a loss of power. Every verb that writes
 * for a tenant checks in its own transaction that the tenant has not been deleted, and is `account_gone` (kind
 * `unauthenticated`) if so, unless the verb says otherwise.
 *
 * No part of it: what a backend stores things in (tables, files, pages), that it opens or reads at once, and which of
 * several writes that are under way together comes first. Each of them sees any other whole or not at all; who needs an
 * order awaits the first.
 *
 * `test/contract/store/` is this text as suites; a backend is one that passes them.
 */
export interface Store
  extends TenantVerbs,
    CredentialVerbs,
    WebhookVerbs,
    FailingWebhookVerbs,
    EventVerbs,
    FailureVerbs,
    DeliveryVerbs,
    ReplayVerbs,
    StatVerbs,
    InboxVerbs,
    AuditVerbs,
    MailVerbs,
    BillingVerbs,
    MaintenanceVerbs,
    RetentionVerbs,
    SealingVerbs,
    ChangeSource {}

// ---------------------------------------------------------------- tenants

export interface NewTenant {
  readonly id: string;
  readonly name: string;
  readonly email: string;
  readonly loginEmail: string | null;
  readonly tier: Tier;
  readonly enforcedTier: Tier | null;
  readonly passwordHash: string;
  readonly apiKey: NewApiKey;
  readonly signingKey: NewSigningKey;
  readonly sealedSigningSecret: Uint8Array;
  readonly webhooks: readonly ListedWebhook[];
  /** Present: its card has to be verified first. */
  readonly verification?: NewVerification;
}

export interface TenantUsage {
  readonly eventsThisMonth: number;
}

export interface TenantRange {
  readonly offset: number;
  readonly limit: number;
  readonly search?: string;
}

export interface TenantVerbs {
  /** @throws invalid `email_taken` */
  createTenant(tenant: NewTenant, now: number, act?: Act): Promise<Tenant>;
  findTenant(tenantId: string): Promise<Tenant | null>;
  findTenantByLoginEmail(loginEmail: string): Promise<Tenant | null>;
  /**
   * Frees the login of an account whose paid plan was asked for until `unverifiedSince` and whose card was never verified.
   * The account; null when the address is no such account's.
   */
  releaseUnverifiedEmail(loginEmail: string, unverifiedSince: number): Promise<Tenant | null>;
  /**
   * Newest first; for the operator.
   * @param range `search`: only those with this in their id, name or e-mail address, in any case
   */
  listTenants(range: TenantRange): Promise<{ tenants: Tenant[]; total: number }>;
  usage(tenantKey: number, now: number): Promise<TenantUsage>;
  /** Sets the tier and the limits with it; leaves the webhooks as they are. @throws invalid `email_taken` */
  setTier(tenantKey: number, tier: Tier, act?: Act): Promise<Tenant>;
  /** Sets the limits that are named instead of the plan's; null: the plan's again. */
  setLimits(tenantKey: number, limits: Partial<OwnLimits>, act?: Act): Promise<Tenant>;
  suspend(tenantKey: number, cause: SuspensionCause, now: number, act?: Act): Promise<Tenant>;
  resume(tenantKey: number, cause: SuspensionCause, act?: Act): Promise<Tenant>;
  /** On paid tiers the e-mail is the login, too. @throws invalid `email_taken` */
  changeEmail(tenantKey: number, email: string, act?: Act): Promise<Tenant>;
  /** Sets the password and ends every session. */
  setPassword(tenantKey: number, passwordHash: string, act?: Act): Promise<Tenant>;
  /** As `setPassword`, if `verified` is still the hash; null when another one was set since it was verified. */
  replacePassword(tenantKey: number, verified: string, passwordHash: string, act?: Act): Promise<Tenant | null>;
  /** Marks the tenant as deleted and frees its e-mail; `eraseDeleted` removes the rows. Idempotent. */
  deleteTenant(tenantKey: number, now: number, act?: Act): Promise<void>;
  /** Removes about `limit` rows of deleted tenants; true while there are more. */
  eraseDeleted(limit: number): Promise<boolean>;
}

// ---------------------------------------------------------------- credentials

export interface NewApiKey {
  readonly id: string;
  /** SHA-256 of the key: what it is found by. */
  readonly hash: Uint8Array;
  readonly sealed: Uint8Array;
}

export interface NewSigningKey {
  readonly id: string;
  readonly publicKey: Uint8Array;
  readonly sealedSeed: Uint8Array;
}

/** What an API key stands for. */
export interface FoundApiKey {
  readonly apiKeyId: string;
  readonly tenant: Tenant;
  readonly expiresAt: number | null;
}

export interface CredentialVerbs {
  /** Newest first, the inactive ones too. */
  apiKeys(tenantKey: number): Promise<ApiKey[]>;
  /** At once where it is known: every event asks. */
  findApiKey(hash: Uint8Array): FoundApiKey | null | Promise<FoundApiKey | null>;
  /** Adds a key; every other active one ends at the earlier of its own end and `othersEndAt`. Forgets all but the latest. */
  rotateApiKey(tenantKey: number, key: NewApiKey, othersEndAt: number, now: number, act?: Act): Promise<ApiKey>;
  /** Notes the last use of keys by id. Keys that are gone are passed over. */
  touchApiKeys(uses: ReadonlyMap<string, number>): Promise<void>;

  /** All that are still published at `now`, the newest first. */
  signingKeys(tenantKey: number, now: number): Promise<SigningKey[]>;
  /**
   * Adds a key that signs from `activatesAt`; the earlier ones are published until `othersRetireAt`.
   * @throws rate_limited `too_many_signing_keys`
   */
  rotateSigningKey(
    tenantKey: number,
    key: NewSigningKey,
    activatesAt: number,
    othersRetireAt: number,
    now: number,
    act?: Act,
  ): Promise<SigningKey>;
  /** Those that sign at `now`, the newest first. */
  signingSecrets(tenantKey: number, now: number): Promise<SigningSecret[]>;
  /** Adds a secret; the one before it signs until `othersEndAt`, and earlier ones no longer. */
  rotateSigningSecret(
    tenantKey: number,
    sealed: Uint8Array,
    othersEndAt: number,
    now: number,
    act?: Act,
  ): Promise<void>;

  /** Ends one session token, remembered until it would have expired. */
  endSession(sessionId: string, expiresAt: number): Promise<void>;
  /** Ends every session token of the tenant. */
  endAllSessions(tenantKey: number, act?: Act): Promise<Tenant>;
  /**
   * The account of a session token, which compares its session version; null when there is no such account any more, or this
   * token was ended by itself.
   */
  findSession(tenantId: string, sessionId: string): Promise<Tenant | null>;
  rememberLogin(tenantKey: number, address: string, now: number, act?: Act): Promise<void>;
  hasLoggedInSince(tenantKey: number, address: string, since: number): Promise<boolean>;
}

// ---------------------------------------------------------------- webhooks

/** How the latest deliveries to a webhook went. Times are those at which attempts began. */
export interface WebhookHealth {
  readonly webhook: Webhook;
  /** Records that were looked at; the next three add up to it. */
  readonly records: number;
  readonly delivered: number;
  readonly failed: number;
  readonly pending: number;
  readonly lastDeliveredAt: number | null;
  /** Of the records that were looked at. */
  readonly deliveredTypes: DeliveredTypes;
  /** Of the newest record whose last attempt failed, also of one that waits for its next try. */
  readonly lastFailedAt: number | null;
  readonly lastError: string | null;
  readonly lastErrorCode: FailureCode | null;
  /** Of the newest last attempt of a record; null when it was not answered. */
  readonly lastStatusCode: number | null;
}

export interface WebhookVerbs {
  /** In the order in which they were given. */
  webhooks(tenantKey: number): Promise<Webhook[]>;
  /**
   * Of each registered webhook, in their order: over its latest `records` among the tenant's latest `walked`, by ingestion.
   * Costs the same however many there are.
   */
  webhookHealth(tenantKey: number, limits: { records: number; walked: number }): Promise<WebhookHealth[]>;
  /** Replaces the whole list. The act gets what changed; a list that is as before is noted as nothing. @returns the new one @throws invalid `too_many_webhooks` */
  replaceWebhooks(
    tenantKey: number,
    webhooks: readonly ListedWebhook[],
    limit: number,
    now: number,
    act?: Act,
  ): Promise<Webhook[]>;
}

// ---------------------------------------------------------------- events

/** An event as it is to be stored. */
export interface NewEvent {
  readonly payload: Uint8Array;
  /** What it is found by beside its time; null: it has none. */
  readonly type: string | null;
  /** By which webhooks that are ordered deliver it. @default null: it stands by itself */
  readonly orderingKey?: string | null;
}

/** From so many events on, a request gets a commit of its own, in turn with all the others: they are about 25 µs each. */
export const heavyEvents = 50;

export interface AcceptRequest {
  readonly tenantKey: number;
  /** Of the API key that it came with: a rotation may have ended it since it was looked up. */
  readonly apiKeyId: string;
  readonly events: readonly NewEvent[];
  /** Of all of them. @default none */
  readonly trace?: TraceContext | null | undefined;
  readonly idempotency?: { readonly key: string; readonly fingerprint: Uint8Array } | undefined;
  /** Asked at the moment of writing: true when nobody waits for the answer any more, and nothing shall be accepted. */
  readonly isAbandoned?: (() => boolean) | undefined;
  /**
   * Asked at the moment of writing, once of each webhook that gets deliveries and is not paused: how many of them its caller will own. The
   * rest is nobody's. @default none
   */
  readonly roomFor?: ((webhook: WebhookRef) => number) | undefined;
}

/** An event that the program itself makes, about a webhook. */
export interface OwnEventRequest extends OwnEvent {
  readonly tenantKey: number;
  readonly payload: Uint8Array;
}

export interface AcceptedEvents {
  readonly eventIds: readonly string[];
  /** True when an idempotency key was met again: nothing was stored, the ids are those of the first time. */
  readonly repeated: boolean;
  /** Of the first event. */
  readonly ingestedAt: number;
  /** The deliveries that the caller owns, in order; empty when `repeated`. */
  readonly deliveries: readonly DueDelivery[];
  /** The webhooks with deliveries that are nobody's and can be claimed; empty when `repeated`. */
  readonly unowned: readonly WebhookRef[];
  /**
   * Of each record that has failed as it was accepted, the key of its webhook, which is disabled; null: there is none. Empty
   * when `repeated`.
   */
  readonly failed: readonly (number | null)[];
}

/**
 * How much of a payload is read. `start`: its first bytes, where it is short enough that reading it costs little; `none`: it
 * is not touched.
 */
export type PayloadPart = "whole" | "start" | "none";

export const payloadStart = { bytes: 200, ofAtMost: 16_384 } as const;

export interface PageQuery extends RecordFilters {
  readonly tenantKey: number;
  readonly page: number;
  readonly size: number;
  /** In the payload, or a part of the event's id. The list is then searched, off the event loop and within bounds. */
  readonly text?: string;
  /** Of the payloads of its records. @default whole */
  readonly payload?: PayloadPart;
}

export interface RecordPage {
  readonly records: Cursor<EventRecord>;
  readonly total: number;
  /** False when a filtered count stopped at 10,000, and when a search did not look at everything. */
  readonly totalIsExact: boolean;
  /** Of a search: the ingestion time down to which all was looked at; null: all was. */
  readonly searchedTo?: number | null;
  /** Events of the account, of which each may have several records; only of the list of all of them. */
  readonly totalEvents?: number;
}

export interface EventVerbs {
  /**
   * Stores events and their delivery rows, all or none, and counts them against the month's quota.
   * In this order: the API key, the answer of an idempotency key, the account's standing, the quota, whether the store may
   * grow.
   * @throws unauthenticated `unauthenticated`, idempotency_conflict `idempotency_key_reused`, what `refusalOfIngestion` says, rate_limited `quota_exceeded`,
   * unavailable `storage_full`
   */
  acceptEvents(request: AcceptRequest): Promise<AcceptedEvents>;
  /**
   * Stores an event of our own for the webhooks that ask for its type, whose deliveries are nobody's. It counts against no
   * quota. Null: no webhook asks, the store may not grow, or the account is gone; then nothing is stored.
   */
  acceptOwnEvent(request: OwnEventRequest): Promise<AcceptedEvents | null>;
  /** Records, the newest event first; those of one event in the order of the webhooks. */
  page(query: PageQuery): Promise<RecordPage>;
  /** All records of one event of this tenant, in the order of the webhooks; null when it has no such event. */
  records(tenantKey: number, eventId: string): Promise<Cursor<EventRecord> | null>;
  /** Key of the tenant that owns the event; null when nobody (any more) does. */
  eventOwner(eventId: string): Promise<number | null>;
  /** Oldest first; null when the tenant has no such event. */
  attempts(
    tenantKey: number,
    eventId: string,
    range: { offset: number; limit: number },
  ): Promise<{ attempts: Cursor<Attempt>; total: number } | null>;
  /**
   * The next delivery of the newest record of the event, as it would be made now; null when there is no such event.
   * @throws invalid `payload_erased`
   */
  previewDelivery(tenantKey: number, eventId: string): Promise<PreviewedDelivery | null>;
}

/** A delivery, and what is to be told with it. */
export interface PreviewedDelivery extends Omit<DueDelivery, "limits" | "sealedHeaders"> {
  /** Of its event. */
  readonly type: string | null;
}

// ---------------------------------------------------------------- replays

export interface NewReplay {
  readonly id: string;
  readonly kind: ReplayKind;
  readonly label: string;
  /** `single`: the event. */
  readonly eventId?: string;
  /** `timeline`: ingestion times, both inclusive. */
  readonly from?: number;
  readonly to?: number;
  /** @default none: it takes all that its kind does */
  readonly filter?: ReplayFilter;
}

/** What has come back of a cancelled replay: the webhooks for which records wait as they did before, and the replay. */
export interface ReturnedRecords {
  readonly replay: Replay;
  readonly tenantId: string;
  readonly webhooks: readonly WebhookRef[];
}

/** What a replay put into the queue: the webhooks to wake and the replay as it stands. */
export interface Requeued {
  readonly replay: Replay;
  readonly webhooks: readonly WebhookRef[];
  /** Deliveries that are owned, and stand for a run that this one has overtaken. Those that still wait need no attempt. */
  readonly overtaken: readonly DeliveryRef[];
  /** The events, those that nothing delivers included; what cannot be read for damage is left out. */
  readonly eventIds: readonly string[];
}

export interface ReplayVerbs {
  /**
   * Queues one event again, at once.
   * @throws not_found `event_not_found` or `event_not_selected`, invalid `payload_erased`, unavailable `storage_full`
   */
  replayEvent(tenantKey: number, replay: NewReplay, now: number, act?: Act): Promise<Requeued>;
  /**
   * Fixes the selection of a bulk replay and lets it wait for its turn.
   * @throws rate_limited `too_many_replays`, `too_many_replays_today`, unavailable `storage_full`
   */
  startReplay(tenantKey: number, replay: NewReplay, now: number, limits: ReplayLimits, act?: Act): Promise<Replay>;
  /** How many events a replay would select, and how many of them have no payload any more. */
  previewReplay(tenantKey: number, replay: Omit<NewReplay, "id" | "label">): Promise<ReplayPreview>;
  /**
   * Queues about `limit` more events of the oldest bulk replay of a tenant whose turn it is; null when there is none.
   * Those of an account that the operator has suspended wait; those of a deleted one are cancelled.
   * @throws unavailable `storage_full`: nothing is queued while the store may not grow
   */
  queueReplayBatch(limit: number, now: number): Promise<(Requeued & { tenantId: string; tenantKey: number }) | null>;
  /** Newest first. */
  replays(
    tenantKey: number,
    range: { offset: number; limit: number },
  ): Promise<{ replays: Cursor<ListedReplay>; total: number }>;
  findReplay(tenantKey: number, replayId: string): Promise<Replay | null>;
  /** The replay that began a run (`DueDelivery.replayKey`). */
  replayByKey(replay: ReplayRef): Promise<Replay | null>;
  /**
   * Leaves out what is not queued yet, and from then on nobody claims what waits for it. Null when there is no such replay.
   */
  cancelReplay(tenantKey: number, replayId: string, now: number, act?: Act): Promise<Replay | null>;
  /**
   * As `cancelReplay`, of about `limit` replays that have not ended, whichever account's; those of a deleted one go with it.
   * Of single events, of which there may be any number, it is not noted who did so.
   * @returns how many; 0: there are none
   */
  cancelReplays(limit: number, now: number, by: Origin): Promise<number>;
  /**
   * About `limit` records that wait for a cancelled replay, and that nobody owns, become what they were before it
   * (`domain/cancelled-run.ts`). `owned`: those that are left are in flight, or on their way back. Null when there are none.
   */
  returnCancelled(limit: number, now: number): Promise<ReturnedRecords | "owned" | null>;
}

// ---------------------------------------------------------------- maintenance

export interface MaintenanceVerbs {
  /** Forgets about `limit` idempotency keys, ended sessions, login addresses, retired keys and entries about acts that have
   * outlived their use; true while there may be more. */
  prune(now: number, limit: number): Promise<boolean>;
  /**
   * Looks further for removed webhooks that no record and no attempt names, and forgets about `limit` of them; true while
   * there may be more.
   */
  forgetWebhooks(now: number, limit: number): Promise<boolean>;
  /** Resolves when a small write is durable. @throws unavailable also when the master key does not open what is sealed */
  probe(): Promise<void>;
  /** How long the oldest write has been waiting for its answer, in ms; 0 when none waits. */
  oldestWaitingWriteMs(): number;
  /**
   * Gives back about `bytes` of the room that erased rows have left; true while there is more. A backend that does so by
   * itself has none.
   */
  reclaim(bytes: number): Promise<boolean>;
  /** Lets the writes that wait come to their end, then closes. Writes from then on are `unavailable`. */
  close(): Promise<void>;
}

// ---------------------------------------------------------------- changes

export interface ChangeSource {
  /**
   * The one who acts on changes in this process, from now on. It is told of each, whichever verb made it, once it is on
   * disk, in the order in which changes became durable; what was not written is not told. A verb is answered after the
   * listener has returned, so from the answer on nothing rests on the state before. Listeners do not wait for anything;
   * one that throws is a defect, which is reported and fails no verb.
   */
  onChange(listener: (change: Change) => void): void;
}
