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
import type { ListedWebhook, WantedList } from "../domain/webhook-list.ts";
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
 * The seam to storage. Each verb is exactly one transaction, and no transaction leaks out of it.
 *
 * Error contract, for every verb: a `DomainError` of kind `unavailable` means that nothing was written and a retry is safe
 * (out of space, storage fault); any other `DomainError` is one that the verb names, and nothing was written then either.
 * A write's promise resolves once the write is durable: it survives a crash and a power loss. Every verb that writes for a
 * tenant checks in its own transaction that the tenant has not been deleted, and fails with `account_gone` (kind
 * `unauthenticated`) if it has, unless the verb says otherwise.
 *
 * Not part of the contract: what a backend stores things in (tables, files, pages), whether it opens or reads synchronously,
 * and the order of concurrent writes. Each write sees any other entirely or not at all; a caller that needs an order awaits
 * the first.
 *
 * `test/contract/store/` is this text as test suites; whatever passes them is a backend.
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
  /** When present, the tenant's card has to be verified first. */
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
  /**
   * A login goes to a new tenant, to a new address or with an upgrade also if an account has it that has not verified a card
   * for a day (rules, section 4). @throws invalid `email_taken`
   */
  createTenant(tenant: NewTenant, now: number, act?: Act): Promise<Tenant>;
  findTenant(tenantId: string): Promise<Tenant | null>;
  findTenantByLoginEmail(loginEmail: string): Promise<Tenant | null>;
  /**
   * Newest first; for the operator.
   * @param range `search`: only tenants whose id, name or e-mail address contains this text, ignoring case
   */
  listTenants(range: TenantRange): Promise<{ tenants: Tenant[]; total: number }>;
  usage(tenantKey: number, now: number): Promise<TenantUsage>;
  /** Sets the tier and the limits that come with it; leaves the webhooks as they are. @throws invalid `email_taken` */
  setTier(tenantKey: number, tier: Tier, act?: Act): Promise<Tenant>;
  /** Overrides the plan's limits with the given ones; null restores the plan's. */
  setLimits(tenantKey: number, limits: Partial<OwnLimits>, act?: Act): Promise<Tenant>;
  suspend(tenantKey: number, cause: SuspensionCause, now: number, act?: Act): Promise<Tenant>;
  resume(tenantKey: number, cause: SuspensionCause, act?: Act): Promise<Tenant>;
  /** On paid tiers the e-mail is also the login. @throws invalid `email_taken` */
  changeEmail(tenantKey: number, email: string, act?: Act): Promise<Tenant>;
  /** Sets the password and ends every session. */
  setPassword(tenantKey: number, passwordHash: string, act?: Act): Promise<Tenant>;
  /** Like `setPassword`, but only if the hash is still `verified`; null when another one was set since it was verified. */
  replacePassword(tenantKey: number, verified: string, passwordHash: string, act?: Act): Promise<Tenant | null>;
  /** Marks the tenant as deleted and frees its e-mail; `eraseDeleted` removes the rows. Idempotent. */
  deleteTenant(tenantKey: number, now: number, act?: Act): Promise<void>;
  /** Removes about `limit` rows of deleted tenants; true while more remain. */
  eraseDeleted(limit: number): Promise<boolean>;
}

// ---------------------------------------------------------------- credentials

export interface NewApiKey {
  readonly id: string;
  /** SHA-256 of the key, by which it is looked up. */
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
  /** Newest first, including inactive ones. */
  apiKeys(tenantKey: number): Promise<ApiKey[]>;
  /** Answers synchronously when the key is cached: every event needs this lookup. */
  findApiKey(hash: Uint8Array): FoundApiKey | null | Promise<FoundApiKey | null>;
  /**
   * Adds a key; any other active one ends at its own end or `othersEndAt`, whichever is earlier. Removes all but the latest. If
   * they end now, no hash finds them any more: were the clock set back, those that were found would be active again.
   */
  rotateApiKey(tenantKey: number, key: NewApiKey, othersEndAt: number, now: number, act?: Act): Promise<ApiKey>;
  /** Notes when keys were last used, by id. Keys that no longer exist are skipped. */
  touchApiKeys(uses: ReadonlyMap<string, number>): Promise<void>;

  /** All keys that are still published at `now`, newest first. */
  signingKeys(tenantKey: number, now: number): Promise<SigningKey[]>;
  /**
   * Adds a key that signs from `activatesAt` on; the earlier ones stay published until `othersRetireAt`.
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
  /** The secrets that sign at `now`, newest first. */
  signingSecrets(tenantKey: number, now: number): Promise<SigningSecret[]>;
  /** Adds a secret; the previous one signs until `othersEndAt`, and older ones stop signing now. */
  rotateSigningSecret(
    tenantKey: number,
    sealed: Uint8Array,
    othersEndAt: number,
    now: number,
    act?: Act,
  ): Promise<void>;

  /** Ends one session token. The store remembers this until the token would have expired. */
  endSession(sessionId: string, expiresAt: number): Promise<void>;
  /** Ends every session token of the tenant. */
  endAllSessions(tenantKey: number, act?: Act): Promise<Tenant>;
  /**
   * The account behind a session token; the caller compares the session version. Null when the account no longer exists or
   * this very token was ended.
   */
  findSession(tenantId: string, sessionId: string): Promise<Tenant | null>;
  rememberLogin(tenantKey: number, address: string, now: number, act?: Act): Promise<void>;
  hasLoggedInSince(tenantKey: number, address: string, since: number): Promise<boolean>;
}

// ---------------------------------------------------------------- webhooks

/** How the latest deliveries to a webhook went. Times are when attempts started. */
export interface WebhookHealth {
  readonly webhook: Webhook;
  /** Records that were looked at; the next three counts add up to it. */
  readonly records: number;
  readonly delivered: number;
  readonly failed: number;
  readonly pending: number;
  readonly lastDeliveredAt: number | null;
  /** Taken from the records that were looked at. */
  readonly deliveredTypes: DeliveredTypes;
  /** Taken from the newest record whose last attempt failed, including one that waits for its next try. */
  readonly lastFailedAt: number | null;
  readonly lastError: string | null;
  readonly lastErrorCode: FailureCode | null;
  /** Taken from the newest of the records' last attempts; null when that got no response. */
  readonly lastStatusCode: number | null;
}

export interface WebhookVerbs {
  /** In the order in which they were registered. */
  webhooks(tenantKey: number): Promise<Webhook[]>;
  /**
   * The health of each registered webhook, in their order: over its latest `records` records among the tenant's latest
   * `walked`, by ingestion. Costs the same however many records there are.
   */
  webhookHealth(tenantKey: number, limits: { records: number; walked: number }): Promise<WebhookHealth[]>;
  /**
   * Replaces the whole list. The act records what changed; an unchanged list is not noted.
   * @returns the new list
   * @throws invalid `too_many_webhooks`, precondition_failed `webhooks_changed`
   */
  replaceWebhooks(tenantKey: number, wanted: WantedList, now: number, act?: Act): Promise<Webhook[]>;
}

// ---------------------------------------------------------------- events

/** An event to be stored. */
export interface NewEvent {
  readonly payload: Uint8Array;
  /** Events can be looked up by it, besides their time; null when the event has none. */
  readonly type: string | null;
  /** Ordered webhooks deliver events with the same key in order. @default null: it stands by itself */
  readonly orderingKey?: string | null;
}

/** A request with at least this many events gets its own commit, in turn with all the others: each event takes about 25 µs. */
export const heavyEvents = 50;

export interface AcceptRequest {
  readonly tenantKey: number;
  /** The API key that the request came with: a rotation may have ended it since it was looked up. */
  readonly apiKeyId: string;
  readonly events: readonly NewEvent[];
  /** Applies to all the events. @default none */
  readonly trace?: TraceContext | null | undefined;
  readonly idempotency?: { readonly key: string; readonly fingerprint: Uint8Array } | undefined;
  /** Asked at the moment of writing: true when the client no longer waits for the answer, so nothing is to be accepted. */
  readonly isAbandoned?: (() => boolean) | undefined;
  /**
   * Asked at the moment of writing, once for each webhook that gets deliveries and is not paused: how many of them the caller
   * will own. The rest stay unowned. @default none
   */
  readonly roomFor?: ((webhook: WebhookRef) => number) | undefined;
}

/** An event that the program itself emits, about a webhook. */
export interface OwnEventRequest extends OwnEvent {
  readonly tenantKey: number;
  readonly payload: Uint8Array;
}

export interface AcceptedEvents {
  readonly eventIds: readonly string[];
  /** True when the idempotency key had been used before: nothing was stored, and the ids are those of the first time. */
  readonly repeated: boolean;
  /** The deliveries that the caller owns, in order; empty when `repeated`. */
  readonly deliveries: readonly DueDelivery[];
  /** The webhooks with unowned deliveries that can be claimed; empty when `repeated`. */
  readonly unowned: readonly WebhookRef[];
  /**
   * One entry for each record that failed on acceptance: the key of its webhook, which is disabled, or null when there is no
   * webhook. Empty when `repeated`.
   */
  readonly failed: readonly (number | null)[];
}

/**
 * How much of a payload is read. `start`: its first bytes, if it is short enough to be cheap to read; `none`: the payload is
 * not touched.
 */
export type PayloadPart = "whole" | "start" | "none";

export const payloadStart = { bytes: 200, ofAtMost: 16_384 } as const;

export interface PageQuery extends RecordFilters {
  readonly tenantKey: number;
  readonly page: number;
  readonly size: number;
  /** Text in the payload, or part of the event's id. The list is then searched, off the event loop and within bounds. */
  readonly text?: string;
  /** How much of the records' payloads is read. @default whole */
  readonly payload?: PayloadPart;
  /** Asked of a query that had to wait for its turn: true when the client is gone, so nothing is to be read. */
  readonly isAbandoned?: (() => boolean) | undefined;
}

export interface RecordPage {
  readonly records: Cursor<EventRecord>;
  readonly total: number;
  /** False when a filtered count stopped at 10,000, or a search did not look at everything. */
  readonly totalIsExact: boolean;
  /** For a search: the ingestion time down to which everything was searched; null when the whole history was. */
  readonly searchedTo?: number | null;
  /** The account's events, each of which may have several records; only given for the unfiltered list. */
  readonly totalEvents?: number;
}

export interface EventVerbs {
  /**
   * Stores events and their delivery rows, all or none, and counts them against the month's quota.
   * Checks, in this order: the API key, the stored answer for the idempotency key, the account's standing, the quota, and
   * whether the store may grow.
   * @throws unauthenticated `unauthenticated`, idempotency_conflict `idempotency_key_reused`, what `refusalOfIngestion` says,
   * rate_limited `quota_exceeded`, unavailable `storage_full`
   */
  acceptEvents(request: AcceptRequest): Promise<AcceptedEvents>;
  /**
   * Stores an event of our own for the webhooks that subscribe to its type. Its deliveries start out unowned, and it counts
   * against no quota. Null when no webhook subscribes, the store may not grow or the account is gone; nothing is stored then.
   */
  acceptOwnEvent(request: OwnEventRequest): Promise<AcceptedEvents | null>;
  /**
   * Records by event, newest first; those of one event in the order of the webhooks.
   * @throws unavailable when too many wait for their turn
   */
  page(query: PageQuery): Promise<RecordPage>;
  /**
   * All records of one event of this tenant, in the order of the webhooks, also those that a replay puts in the place of others
   * before the first step is read; null when it has no such event. None when it is erased meanwhile.
   */
  records(tenantKey: number, eventId: string): Promise<Cursor<EventRecord> | null>;
  /** Key of the tenant that owns the event; null when no tenant does, or not any more. */
  eventOwner(eventId: string): Promise<number | null>;
  /** Oldest first; null when the tenant has no such event. */
  attempts(
    tenantKey: number,
    eventId: string,
    range: { offset: number; limit: number },
  ): Promise<{ attempts: Cursor<Attempt>; total: number } | null>;
  /**
   * The next delivery of the event's newest record, as it would be made now; null when there is no such event.
   * @throws invalid `payload_erased`
   */
  previewDelivery(tenantKey: number, eventId: string): Promise<PreviewedDelivery | null>;
}

/** A delivery, and what is shown with it. */
export interface PreviewedDelivery extends Omit<DueDelivery, "limits" | "sealedHeaders"> {
  /** Type of the event. */
  readonly type: string | null;
}

// ---------------------------------------------------------------- replays

export interface NewReplay {
  readonly id: string;
  readonly kind: ReplayKind;
  readonly label: string;
  /** For `single`: the event. */
  readonly eventId?: string;
  /** For `timeline`: ingestion times, both inclusive. */
  readonly from?: number;
  readonly to?: number;
  /** @default none: takes everything its kind selects */
  readonly filter?: ReplayFilter;
}

/** What a cancelled replay has given back: the webhooks whose records wait as they did before it, and the replay. */
export interface ReturnedRecords {
  readonly replay: Replay;
  readonly tenantId: string;
  readonly webhooks: readonly WebhookRef[];
}

/** What a replay put into the queue: the webhooks to wake, and the replay as it stands now. */
export interface Requeued {
  readonly replay: Replay;
  readonly webhooks: readonly WebhookRef[];
  /** Owned deliveries of runs that this one supersedes. Those not attempted yet need no attempt. */
  readonly overtaken: readonly DeliveryRef[];
  /** The events, including those with nothing to deliver; events too damaged to read are left out. */
  readonly eventIds: readonly string[];
}

export interface ReplayVerbs {
  /**
   * Queues one event again, immediately.
   * @throws not_found `event_not_found` or `event_not_selected`, invalid `payload_erased`, unavailable `storage_full`
   */
  replayEvent(tenantKey: number, replay: NewReplay, now: number, act?: Act): Promise<Requeued>;
  /**
   * Fixes the selection of a bulk replay and leaves it waiting for its turn.
   * @throws rate_limited `too_many_replays`, `too_many_replays_today`, unavailable `storage_full`
   */
  startReplay(tenantKey: number, replay: NewReplay, now: number, limits: ReplayLimits, act?: Act): Promise<Replay>;
  /** How many events a replay would select, and how many of those no longer have a payload. */
  previewReplay(tenantKey: number, replay: Omit<NewReplay, "id" | "label">): Promise<ReplayPreview>;
  /**
   * Queues about `limit` more events of the oldest bulk replay of the tenant whose turn it is; null when there is none.
   * Replays of an account that the operator has suspended wait; those of a deleted account are cancelled.
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
   * Drops what is not queued yet; what already waits for the replay can no longer be claimed. Null when there is no such replay.
   */
  cancelReplay(tenantKey: number, replayId: string, now: number, act?: Act): Promise<Replay | null>;
  /**
   * Like `cancelReplay`, for about `limit` unfinished replays of any account; those of a deleted account go with it.
   * Who cancelled is not noted for replays of single events, since there may be any number of them.
   * @returns how many were cancelled; 0 when none is left
   */
  cancelReplays(limit: number, now: number, by: Origin): Promise<number>;
  /**
   * Turns about `limit` unowned records that wait for a cancelled replay back into what they were before it
   * (`domain/cancelled-run.ts`). `owned`: those that are left are in flight, or on their way back. Null when there are none.
   */
  returnCancelled(limit: number, now: number): Promise<ReturnedRecords | "owned" | null>;
}

// ---------------------------------------------------------------- maintenance

export interface MaintenanceVerbs {
  /**
   * Removes about `limit` idempotency keys, ended sessions, login addresses, retired keys and audit entries that have
   * outlived their use; true while there may be more. Tables that are damaged are skipped. What was erased since the last call
   * is removed from a backend's log, too, if it has one that would keep it.
   */
  prune(now: number, limit: number): Promise<boolean>;
  /**
   * Continues the search for removed webhooks that no record and no attempt refers to, and removes about `limit` of them; true
   * while there may be more.
   */
  forgetWebhooks(now: number, limit: number): Promise<boolean>;
  /** Resolves once a small write is durable. @throws unavailable, also when the master key does not open what is sealed */
  probe(): Promise<void>;
  /** How long the oldest pending write has been waiting to be durable, in ms; 0 when none waits. */
  oldestWaitingWriteMs(): number;
  /**
   * Gives back about `bytes` of the space that erased rows have left; true while there is more. A backend that does so by
   * itself always answers false.
   */
  reclaim(bytes: number): Promise<boolean>;
  /** Lets pending writes finish, then closes. Writes after this fail with `unavailable`. */
  close(): Promise<void>;
}

// ---------------------------------------------------------------- changes

export interface ChangeSource {
  /**
   * Sets the one listener that acts on changes in this process. It hears of every change, whichever verb made it, once the
   * change is on disk and in the order in which changes became durable; what was not written is not reported. A verb is
   * answered after the listener has returned, so once it is answered nothing relies on the previous state. Listeners must
   * not wait for anything; one that throws is a defect, which is reported and fails no verb.
   */
  onChange(listener: (change: Change) => void): void;
}
