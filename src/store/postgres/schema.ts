import { sql } from "drizzle-orm";
import {
  boolean,
  check,
  index,
  integer,
  pgTable,
  primaryKey,
  smallint,
  text,
  timestamp,
  uniqueIndex,
} from "drizzle-orm/pg-core";
import type { DisabledReason } from "../../domain/failing-webhook.ts";
import { tiersAscending } from "../../domain/plans.ts";
import { bytes, whole } from "./columns.ts";

/**
 * The PostgreSQL schema: the tables that are written now and then. Those that every event touches are in `event-schema.ts`;
 * the reasons for the indexes are in the SQLite schema, which has the same tables. Migrations are generated from these files
 * (`bun run db:generate:postgres`); partitions, `include` and storage parameters are added to them by hand, because drizzle
 * cannot express those.
 *
 * Everything that belongs to a tenant has the tenant in its primary key, so that the tables could be sharded by it.
 */

/** One row: a known text, sealed with the master key. A key that cannot open it belongs to another database. */
export const vaultCheck = pgTable(
  "vault_check",
  {
    id: integer("id").primaryKey(),
    sealed: bytes("sealed").notNull(),
  },
  (t) => [check("vault_check_is_one_row", sql`${t.id} = 1`)],
);

export const tenant = pgTable(
  "tenant",
  {
    key: whole("key").primaryKey().generatedByDefaultAsIdentity(),
    id: text("id").notNull(),
    name: text("name").notNull(),
    email: text("email").notNull(),
    /** The e-mail in lower case while it is a login id, which is the case on paid tiers only. */
    loginEmail: text("login_email"),
    tier: text("tier", { enum: tiersAscending }).notNull(),
    enforcedTier: text("enforced_tier", { enum: tiersAscending }),
    passwordHash: text("password_hash").notNull(),
    sessionVersion: integer("session_version").notNull().default(1),
    createdAt: whole("created_at").notNull(),
    operatorSuspendedAt: whole("operator_suspended_at"),
    paymentSuspendedAt: whole("payment_suspended_at"),
    pastDueAt: whole("past_due_at"),
    /** What the operator has set instead of the plan's values; null: the plan's. */
    ownEventsPerMonth: whole("own_events_per_month"),
    ownWebhooks: whole("own_webhooks"),
    /** 0: forever. Null: the server's setting applies. */
    ownRetentionDays: integer("own_retention_days"),
    ownPayloadDays: integer("own_payload_days"),
    ownStorageBytes: whole("own_storage_bytes"),
    /** Since when its events have taken more than that. */
    storageFullAt: whole("storage_full_at"),
    /** The last event whose payload was erased before the event itself; null: none. Not a field of `Tenant`. */
    payloadsErasedTo: whole("payloads_erased_to"),
    deletedAt: whole("deleted_at"),
    /**
     * Incremented by every change of the account, its webhooks and its API keys: what a node keeps of them carries the
     * version it read.
     */
    version: integer("version").notNull().default(1),
  },
  (t) => [
    uniqueIndex("tenant_by_id").on(t.id),
    uniqueIndex("tenant_by_login_email").on(t.loginEmail),
    index("tenant_to_keep_otherwise")
      .on(t.key)
      .where(
        sql`${t.ownRetentionDays} is not null or ${t.ownPayloadDays} is not null or ${t.ownStorageBytes} is not null`,
      ),
    index("tenant_to_erase").on(t.deletedAt).where(sql`${t.deletedAt} is not null`),
    check("tenant_tier", sql`${t.tier} in ('free', 'pro', 'business', 'enterprise')`),
    check("tenant_enforced_tier", sql`${t.enforcedTier} in ('free', 'pro', 'business', 'enterprise')`),
    check("tenant_free_has_no_login_email", sql`${t.tier} <> 'free' or ${t.loginEmail} is null`),
  ],
);

/**
 * Accounts whose rows have been erased. What other nodes were accepting for one when it was deleted may have been written
 * afterwards, so its rows are searched for once more.
 */
export const erasedTenant = pgTable("erased_tenant", {
  tenantKey: whole("tenant_key").primaryKey(),
  /** By the clock of the database. */
  erasedAt: timestamp("erased_at", { withTimezone: true }).notNull().default(sql`clock_timestamp()`),
});

export const apiKey = pgTable(
  "api_key",
  {
    key: whole("key").generatedByDefaultAsIdentity(),
    id: text("id").notNull(),
    tenantKey: whole("tenant_key")
      .notNull()
      .references(() => tenant.key),
    hash: bytes("hash").notNull(),
    sealed: bytes("sealed").notNull(),
    createdAt: whole("created_at").notNull(),
    lastUsedAt: whole("last_used_at"),
    expiresAt: whole("expires_at"),
  },
  (t) => [
    primaryKey({ columns: [t.tenantKey, t.key] }),
    // Looked up without the tenant, which it identifies.
    uniqueIndex("api_key_by_hash").on(t.hash),
  ],
);

export const signingKey = pgTable(
  "signing_key",
  {
    key: whole("key").generatedByDefaultAsIdentity(),
    id: text("id").notNull(),
    tenantKey: whole("tenant_key")
      .notNull()
      .references(() => tenant.key),
    publicKey: bytes("public_key").notNull(),
    sealedSeed: bytes("sealed_seed").notNull(),
    activatesAt: whole("activates_at").notNull(),
    retiresAt: whole("retires_at"),
  },
  (t) => [
    primaryKey({ columns: [t.tenantKey, t.key] }),
    index("signing_key_to_prune").on(t.retiresAt).where(sql`${t.retiresAt} is not null`),
  ],
);

export const signingSecret = pgTable(
  "signing_secret",
  {
    key: whole("key").generatedByDefaultAsIdentity(),
    tenantKey: whole("tenant_key")
      .notNull()
      .references(() => tenant.key),
    sealed: bytes("sealed").notNull(),
    createdAt: whole("created_at").notNull(),
    expiresAt: whole("expires_at"),
  },
  (t) => [
    primaryKey({ columns: [t.tenantKey, t.key] }),
    index("signing_secret_to_prune").on(t.expiresAt).where(sql`${t.expiresAt} is not null`),
  ],
);

/** Session tokens that were logged out before they expired. */
export const endedSession = pgTable(
  "ended_session",
  {
    id: text("id").primaryKey(),
    expiresAt: whole("expires_at").notNull(),
  },
  (t) => [index("ended_session_by_expiry").on(t.expiresAt)],
);

/** Addresses from which an account has logged in recently: such an address is not locked out by strangers' failures. */
export const loginAddress = pgTable(
  "login_address",
  {
    tenantKey: whole("tenant_key")
      .notNull()
      .references(() => tenant.key),
    address: text("address").notNull(),
    lastLoginAt: whole("last_login_at").notNull(),
  },
  (t) => [primaryKey({ columns: [t.tenantKey, t.address] }), index("login_address_by_time").on(t.lastLoginAt)],
);

/**
 * A removed webhook keeps its row as long as a record or an attempt refers to it, because they show its URL; one that was
 * never used is deleted immediately. Registering the URL again creates a new row.
 */
export const webhook = pgTable(
  "webhook",
  {
    key: whole("key").generatedByDefaultAsIdentity(),
    id: text("id").notNull(),
    tenantKey: whole("tenant_key")
      .notNull()
      .references(() => tenant.key),
    url: text("url").notNull(),
    name: text("name").notNull(),
    position: integer("position").notNull(),
    createdAt: whole("created_at").notNull(),
    removedAt: whole("removed_at"),
    /** Removed or disabled, and no record waits for it any longer. */
    drained: boolean("drained").notNull().default(false),
    /** Whether it ever had a record; null: not known yet (`webhook-use.ts` of SQLite). */
    used: boolean("used"),
    /** Patterns as JSON; null: it takes every event. */
    eventTypes: text("event_types"),
    /** Its deliveries are on hold. */
    paused: boolean("paused").notNull().default(false),
    /** The most attempts that start in a second, and that run at a time; null: the server's limits. */
    rateLimit: integer("rate_limit"),
    maxConcurrency: integer("max_concurrency"),
    /** The tenant's own headers on its deliveries. */
    sealedHeaders: bytes("sealed_headers"),
    /** For these four see `Failing`. Null: it is not failing. */
    failingSince: whole("failing_since"),
    goneInARow: integer("gone_in_a_row"),
    toldAt: whole("told_at"),
    warnedAt: whole("warned_at"),
    disabledAt: whole("disabled_at"),
    disabledReason: text("disabled_reason").$type<DisabledReason>(),
    ordered: boolean("ordered").notNull().default(false),
    /** It was ordered, and records may still be held back for it. */
    isReleasing: boolean("is_releasing").notNull().default(false),
  },
  (t) => [
    primaryKey({ columns: [t.tenantKey, t.key] }),
    // Lists filtered by a webhook may name it either way, and may name a removed one.
    index("webhook_by_url").on(t.tenantKey, t.url),
    index("webhook_by_id").on(t.tenantKey, t.id),
    index("webhook_to_judge").on(t.tenantKey, t.key).where(sql`${t.removedAt} is not null and ${t.used} is null`),
    index("webhook_to_release").on(t.key).where(sql`${t.isReleasing}`),
    index("webhook_to_drain").on(t.removedAt).where(sql`${t.removedAt} is not null and not ${t.drained}`),
    index("webhook_disabled_to_drain")
      .on(t.disabledAt)
      .where(sql`${t.disabledAt} is not null and ${t.removedAt} is null and not ${t.drained}`),
    index("webhook_failing").on(t.failingSince).where(sql`${t.failingSince} is not null`),
    index("webhook_by_tenant").on(t.tenantKey, t.position),
    // Removed webhooks stay, so an account that changes its list often has many; reading the list must not walk through them.
    index("webhook_registered").on(t.tenantKey, t.position).where(sql`${t.removedAt} is null`),
    uniqueIndex("webhook_url_once").on(t.tenantKey, t.url).where(sql`${t.removedAt} is null`),
  ],
);

export const replay = pgTable(
  "replay",
  {
    key: whole("key").generatedByDefaultAsIdentity(),
    id: text("id").notNull(),
    tenantKey: whole("tenant_key")
      .notNull()
      .references(() => tenant.key),
    kind: text("kind", { enum: ["single", "timeline", "all", "failed"] }).notNull(),
    /** JSON; a long label is shortened by `cutLabel`, and `labelKey` then leads to the whole. */
    label: text("label").notNull(),
    /** No foreign key, for the reason given at `event`. Null in rows older than this column, whatever their label. */
    labelKey: whole("label_key"),
    /** `queued`: every record is in the queue, and some have not ended. */
    phase: text("phase", { enum: ["waiting", "queueing", "queued", "completed", "cancelled"] }).notNull(),
    /** The selected events are in fromSeq..toSeq; the cursor is the last one that has been queued. */
    fromSeq: whole("from_seq").notNull(),
    toSeq: whole("to_seq").notNull(),
    cursorSeq: whole("cursor_seq").notNull(),
    selected: whole("selected").notNull(),
    queued: whole("queued").notNull().default(0),
    delivered: whole("delivered").notNull().default(0),
    failed: whole("failed").notNull().default(0),
    superseded: whole("superseded").notNull().default(0),
    skipped: whole("skipped").notNull().default(0),
    createdAt: whole("created_at").notNull(),
    completedAt: whole("completed_at"),
    filter: text("filter"),
    returned: whole("returned").notNull().default(0),
    isReturning: boolean("is_returning").notNull().default(false),
    payloadsErased: whole("payloads_erased").notNull().default(0),
  },
  (t) => [
    primaryKey({ columns: [t.tenantKey, t.key] }),
    uniqueIndex("replay_by_id").on(t.tenantKey, t.id),
    // Not "<> 'single'": with that, looking for the next turn would walk through this index instead of its own.
    index("replay_of_day").on(t.tenantKey, t.createdAt).where(sql`${t.kind} in ('timeline', 'all', 'failed')`),
    index("replay_to_return").on(t.key).where(sql`${t.isReturning}`),
    index("replay_to_queue").on(t.tenantKey, t.key).where(sql`${t.phase} in ('waiting', 'queueing', 'queued')`),
    check("replay_ended_at_most_queued", sql`${t.delivered} + ${t.failed} + ${t.superseded} <= ${t.queued}`),
  ],
);

/** Long labels of replays, each stored once per account, however many of its replays carry it. */
export const replayLabel = pgTable(
  "replay_label",
  {
    key: whole("key").generatedByDefaultAsIdentity(),
    tenantKey: whole("tenant_key")
      .notNull()
      .references(() => tenant.key),
    /** SHA-256 of the label. */
    hash: bytes("hash").notNull(),
    /** JSON, because a label may contain characters that a text cannot hold here. */
    text: text("text").notNull(),
  },
  (t) => [primaryKey({ columns: [t.tenantKey, t.key] }), uniqueIndex("replay_label_once").on(t.tenantKey, t.hash)],
);

/**
 * Remembered 202s of requests with an `Idempotency-Key`. Here and below the tenant is not a foreign key: to check it, each
 * insert would lock the tenant's row, which the rare verbs need to lock exclusively.
 */
export const idempotency = pgTable(
  "idempotency",
  {
    tenantKey: whole("tenant_key").notNull(),
    key: text("key").notNull(),
    /** SHA-256 over path and body. */
    fingerprint: bytes("fingerprint").notNull(),
    /** The event ids of the response, joined by spaces. */
    eventIds: text("event_ids").notNull(),
    createdAt: whole("created_at").notNull(),
  },
  (t) => [primaryKey({ columns: [t.tenantKey, t.key] }), index("idempotency_by_time").on(t.createdAt)],
);

/**
 * How the deliveries of a replay ended, counted separately by each lane, as in `usage`. The counts move to the replay's row
 * when it ends.
 */
export const replayCount = pgTable(
  "replay_count",
  {
    tenantKey: whole("tenant_key").notNull(),
    replayKey: whole("replay_key").notNull(),
    /** Slot of the lane. */
    slot: smallint("slot").notNull(),
    delivered: whole("delivered").notNull(),
    failed: whole("failed").notNull(),
    superseded: whole("superseded").notNull(),
  },
  (t) => [primaryKey({ columns: [t.tenantKey, t.replayKey, t.slot] })],
);

/** What happened in one minute for one tenant, for charts. */
export const stat = pgTable(
  "stat",
  {
    tenantKey: whole("tenant_key").notNull(),
    /** Minutes since the Unix epoch. */
    minute: integer("minute").notNull(),
    /** Slot of the node that counted, since several write concurrently. A minute is the sum of its rows. */
    slot: smallint("slot").notNull(),
    accepted: integer("accepted").notNull(),
    delivered: integer("delivered").notNull(),
    failed: integer("failed").notNull(),
    attempts: integer("attempts").notNull(),
    /**
     * Response times of the attempts, in the form of `writeHistogram`. With a separate row for each latency bucket, a week of
     * a busy tenant was 150,000 rows more, and its chart took 58 ms; 8 this way (84 and 28 next to 49 tenants as busy).
     */
    latency: text("latency").notNull().default("[]"),
  },
  (t) => [primaryKey({ columns: [t.tenantKey, t.minute, t.slot] })],
);

/** Like `stat`, for one webhook, including removed ones. */
export const webhookStat = pgTable(
  "webhook_stat",
  {
    tenantKey: whole("tenant_key").notNull(),
    webhookKey: whole("webhook_key").notNull(),
    minute: integer("minute").notNull(),
    slot: smallint("slot").notNull(),
    delivered: integer("delivered").notNull(),
    failed: integer("failed").notNull(),
    attempts: integer("attempts").notNull(),
    latency: text("latency").notNull(),
  },
  (t) => [primaryKey({ columns: [t.tenantKey, t.webhookKey, t.minute, t.slot] })],
);

/** Events of a tenant that were not accepted, by month and reason; each slot has its own row, as in `stat`. */
export const refusedEvents = pgTable(
  "refused_events",
  {
    tenantKey: whole("tenant_key").notNull(),
    /** In the form of `utcMonth`. */
    month: integer("month").notNull(),
    /** One of `RefusalReason`. */
    reason: text("reason").notNull(),
    slot: smallint("slot").notNull(),
    events: whole("events").notNull(),
  },
  (t) => [primaryKey({ columns: [t.tenantKey, t.month, t.reason, t.slot] })],
);
