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
import { bytes, whole } from "./columns.ts";

/**
 * The PostgreSQL schema: what is written now and then. What every event touches is in `event-schema.ts`; why an index is
 * there is said in the SQLite schema, whose tables these are. Migrations are generated from these files (`bun run
 * db:generate:postgres`); partitions, `include` and storage parameters are added to them by hand, as drizzle has no words
 * for those.
 *
 * What belongs to a tenant has it in its primary key, so that the tables could be spread over servers by it.
 */

/** One row: a known text, sealed with the master key. A key that does not open it belongs to another database. */
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
    /** The e-mail in lower case while it is a login id, which it is on paid tiers only. */
    loginEmail: text("login_email"),
    tier: text("tier", { enum: ["free", "pro", "business", "enterprise"] }).notNull(),
    enforcedTier: text("enforced_tier", { enum: ["free", "pro", "business", "enterprise"] }),
    passwordHash: text("password_hash").notNull(),
    sessionVersion: integer("session_version").notNull().default(1),
    createdAt: whole("created_at").notNull(),
    operatorSuspendedAt: whole("operator_suspended_at"),
    paymentSuspendedAt: whole("payment_suspended_at"),
    pastDueAt: whole("past_due_at"),
    /** What the operator has set instead of the plan's; null: the plan's. */
    ownEventsPerMonth: whole("own_events_per_month"),
    ownWebhooks: whole("own_webhooks"),
    /** 0: for ever. Null: as long as those of any. */
    ownRetentionDays: integer("own_retention_days"),
    ownPayloadDays: integer("own_payload_days"),
    ownStorageBytes: whole("own_storage_bytes"),
    /** Since when its events have taken more than that. */
    storageFullAt: whole("storage_full_at"),
    /** The last event whose payload was erased before the event; null: none was. No field of `Tenant`. */
    payloadsErasedTo: whole("payloads_erased_to"),
    deletedAt: whole("deleted_at"),
    /** Grows with every change of the account, its webhooks and its API keys: what a node keeps of them names the one it read. */
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
 * Accounts whose rows are gone. What other nodes were accepting for one as it was deleted may have come after that, so they
 * are looked for once more.
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
    // Asked without the tenant, whom it tells.
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

/** Session tokens that were logged out before their end. */
export const endedSession = pgTable(
  "ended_session",
  {
    id: text("id").primaryKey(),
    expiresAt: whole("expires_at").notNull(),
  },
  (t) => [index("ended_session_by_expiry").on(t.expiresAt)],
);

/** From where an account was logged in to of late: such an address is not shut out by strangers' failures. */
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
 * A removed webhook keeps its row as long as a record or an attempt names it, for they show its URL; one that was never used
 * goes at once. Registering the URL again makes a new row.
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
    /** Removed or disabled, and no record waits for it any more. */
    drained: boolean("drained").notNull().default(false),
    /** Whether it ever had a record; null: to be found out (`webhook-use.ts` of SQLite). */
    used: boolean("used"),
    /** Patterns as JSON; null: it takes every event. */
    eventTypes: text("event_types"),
    /** Its deliveries wait. */
    paused: boolean("paused").notNull().default(false),
    /** Most attempts that start in a second, and at once; null: as of any. */
    rateLimit: integer("rate_limit"),
    maxConcurrency: integer("max_concurrency"),
    /** Headers of the tenant's own on its deliveries. */
    sealedHeaders: bytes("sealed_headers"),
    /** Of these four: see `Failing`. Null: it is well. */
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
    // Lists filtered by a webhook name it in either way, also a removed one.
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
    // Removed ones stay, so an account that changes its list often has many; reading the list must not walk through them.
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
    /** As JSON, and as `cutLabel` has it, when it is long; `labelKey` then leads to the whole. */
    label: text("label").notNull(),
    /** No foreign key, for the reason that is said at `event`. Null in rows that are older than it, whatever their label. */
    labelKey: whole("label_key"),
    /** `queued`: every record is in the queue, and some have not ended. */
    phase: text("phase", { enum: ["waiting", "queueing", "queued", "completed", "cancelled"] }).notNull(),
    /** The events of the selection lie in fromSeq..toSeq; the cursor is the last one that has been queued. */
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
    // Not "<> 'single'": whoever looks for the next turn by that would walk through this one instead of its own.
    index("replay_of_day").on(t.tenantKey, t.createdAt).where(sql`${t.kind} in ('timeline', 'all', 'failed')`),
    index("replay_to_return").on(t.key).where(sql`${t.isReturning}`),
    index("replay_to_queue").on(t.tenantKey, t.key).where(sql`${t.phase} in ('waiting', 'queueing', 'queued')`),
    check("replay_ended_at_most_queued", sql`${t.delivered} + ${t.failed} + ${t.superseded} <= ${t.queued}`),
  ],
);

/** Long labels of replays, each once for an account, however many of its replays carry it. */
export const replayLabel = pgTable(
  "replay_label",
  {
    key: whole("key").generatedByDefaultAsIdentity(),
    tenantKey: whole("tenant_key")
      .notNull()
      .references(() => tenant.key),
    /** SHA-256 of the label. */
    hash: bytes("hash").notNull(),
    /** As JSON, as a label may have characters that no text has here. */
    text: text("text").notNull(),
  },
  (t) => [primaryKey({ columns: [t.tenantKey, t.key] }), uniqueIndex("replay_label_once").on(t.tenantKey, t.hash)],
);

/**
 * Remembered 202s of requests with an `Idempotency-Key`. Here and below the tenant is no foreign key: to check it, each
 * insert would lock the tenant's row, which the rare verbs lock for themselves.
 */
export const idempotency = pgTable(
  "idempotency",
  {
    tenantKey: whole("tenant_key").notNull(),
    key: text("key").notNull(),
    /** SHA-256 over path and body. */
    fingerprint: bytes("fingerprint").notNull(),
    /** The event ids of the answer, joined by a space. */
    eventIds: text("event_ids").notNull(),
    createdAt: whole("created_at").notNull(),
  },
  (t) => [primaryKey({ columns: [t.tenantKey, t.key] }), index("idempotency_by_time").on(t.createdAt)],
);

/**
 * What the deliveries of a replay came to, of each lane its own counts, as in `usage`. They go to the replay's row when it
 * ends.
 */
export const replayCount = pgTable(
  "replay_count",
  {
    tenantKey: whole("tenant_key").notNull(),
    replayKey: whole("replay_key").notNull(),
    /** Of the lane. */
    slot: smallint("slot").notNull(),
    delivered: whole("delivered").notNull(),
    failed: whole("failed").notNull(),
    superseded: whole("superseded").notNull(),
  },
  (t) => [primaryKey({ columns: [t.tenantKey, t.replayKey, t.slot] })],
);

/** What happened in one minute of one tenant, for charts. */
export const stat = pgTable(
  "stat",
  {
    tenantKey: whole("tenant_key").notNull(),
    /** Minutes since the Unix epoch. */
    minute: integer("minute").notNull(),
    /** Of the node that counted, as several write at once. A minute is their sum. */
    slot: smallint("slot").notNull(),
    accepted: integer("accepted").notNull(),
    delivered: integer("delivered").notNull(),
    failed: integer("failed").notNull(),
    attempts: integer("attempts").notNull(),
    /**
     * Response times of the attempts, as `writeHistogram` has them. With a row of its own for each latency bucket, a week of
     * a busy tenant was 150,000 rows more, and its chart took 58 ms; 8 this way (84 and 28 beside 49 tenants as busy).
     */
    latency: text("latency").notNull().default("[]"),
  },
  (t) => [primaryKey({ columns: [t.tenantKey, t.minute, t.slot] })],
);

/** As `stat`, of one webhook, also of a removed one. */
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

/** Events of a tenant that were not accepted, by month and reason; of every slot its own row, as in `stat`. */
export const refusedEvents = pgTable(
  "refused_events",
  {
    tenantKey: whole("tenant_key").notNull(),
    /** As `utcMonth` has it. */
    month: integer("month").notNull(),
    /** As `RefusalReason` has it. */
    reason: text("reason").notNull(),
    slot: smallint("slot").notNull(),
    events: whole("events").notNull(),
  },
  (t) => [primaryKey({ columns: [t.tenantKey, t.month, t.reason, t.slot] })],
);
