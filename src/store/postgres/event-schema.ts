import { sql } from "drizzle-orm";
import {
  check,
  index,
  integer,
  pgSequence,
  pgTable,
  primaryKey,
  smallint,
  text,
  timestamp,
  uniqueIndex,
} from "drizzle-orm/pg-core";
import type { FailureCode } from "../../domain/failure.ts";
import { bytes, whole } from "./columns.ts";

/**
 * The tables that every event touches, and those that say which node may touch them. No foreign key leads into or out of
 * them: a node writes them in batches, for many tenants at a time.
 */

/** The most nodes on one database. Sequence numbers and keys have room for that many. */
export const nodeSlots = 32;
/** The most lanes of a node. */
export const laneSlots = 4;

/** Never a node's incarnation: those count from 1. */
export const heldBack = 0;

/** Never yields the same number twice: the number of a node that is gone never refers to one that exists. */
export const nodeIncarnation = pgSequence("node_incarnation", { maxValue: 2 ** 31 - 1 });

/** The nodes that are alive, or not yet known to be dead. The lease goes by the clock of the database. */
export const node = pgTable(
  "node",
  {
    slot: smallint("slot").primaryKey(),
    incarnation: integer("incarnation").notNull(),
    joinedAt: timestamp("joined_at", { withTimezone: true }).notNull(),
    leaseUntil: timestamp("lease_until", { withTimezone: true }).notNull(),
    /** For people. */
    name: text("name").notNull(),
    /** Where it listens; no delivery may go there. */
    listener: text("listener").notNull(),
    /** Migrations that its program knows. */
    schema: integer("schema").notNull(),
    /** Number of the latest change that it has acted on, along with all before it. */
    heeded: whole("heeded").notNull(),
    /** Ids of the master keys that it has, separated by commas; the one that it seals with comes first. */
    keys: text("keys").notNull().default(""),
  },
  (t) => [
    uniqueIndex("node_by_incarnation").on(t.incarnation),
    check("node_slot", sql`${t.slot} between 0 and ${sql.raw(String(nodeSlots - 1))}`),
  ],
);

/**
 * What a lane knows about itself: whose it is, and the number of its last batch. Each batch takes its number from here in the
 * statement that writes it, so the row distinguishes a batch that happened from one that did not, and stops the batches of a
 * node that was declared dead.
 */
export const lane = pgTable("lane", {
  /** Slot of the node × `laneSlots` + which of its lanes. */
  slot: smallint("slot").primaryKey(),
  incarnation: integer("incarnation"),
  batch: whole("batch").notNull(),
});

/**
 * Counters of a tenant, separate for each lane, so that no lane waits for another. The tenant's counters are their sum; a
 * single one may be negative, since one lane may settle what another accepted.
 */
export const usage = pgTable(
  "usage",
  {
    tenantKey: whole("tenant_key").notNull(),
    /** Slot of the lane. */
    slot: smallint("slot").notNull(),
    /** The UTC month that `used` and `granted` belong to, as 202611. */
    month: integer("month").notNull(),
    used: whole("used").notNull(),
    /** How many events of the month's quota this lane may spend. */
    granted: whole("granted").notNull(),
    events: whole("events").notNull(),
    pending: whole("pending").notNull(),
    delivered: whole("delivered").notNull(),
    failed: whole("failed").notNull(),
    skipped: whole("skipped").notNull().default(0),
  },
  (t) => [
    primaryKey({ columns: [t.tenantKey, t.slot] }),
    check("usage_within_grant", sql`${t.used} between 0 and ${t.granted}`),
  ],
);

/** Immutable once accepted; partitioned by `seq`, which contains the time. The id is `seq` and `idTail`, as in SQLite. */
export const event = pgTable(
  "event",
  {
    seq: whole("seq").notNull(),
    tenantKey: whole("tenant_key").notNull(),
    idTail: bytes("id_tail").notNull(),
    payload: bytes("payload").notNull(),
    /** In the form of `TraceContext`. */
    trace: text("trace"),
    type: text("type"),
    orderingKey: text("ordering_key"),
  },
  (t) => [primaryKey({ columns: [t.seq, t.tenantKey] })],
);

/** What every record has, pending or not. */
const recordColumns = () => ({
  tenantKey: whole("tenant_key").notNull(),
  eventSeq: whole("event_seq").notNull(),
  key: whole("key").notNull(),
  run: integer("run").notNull(),
  attemptsInRun: integer("attempts_in_run").notNull(),
  attempts: integer("attempts").notNull(),
  lastAttemptAt: whole("last_attempt_at"),
  /** How long that attempt took; also null in rows older than this column. */
  lastDurationMs: integer("last_duration_ms"),
  errorReason: text("error_reason"),
  /** The replay that began the current run. */
  replayKey: whole("replay_key"),
  /** How many of its attempts the log no longer has; `attempts` counts them too. */
  attemptsForgotten: integer("attempts_forgotten").notNull().default(0),
  errorCode: text("error_code").$type<FailureCode>(),
  statusCode: integer("status_code"),
  /** Hash of its event's type (`type-hash.ts`); null: it has none. */
  typeHash: whole("type_hash"),
  /** Key of the group that counts its failure; null without a failure, and in rows older than the groups. */
  failureKey: whole("failure_key"),
});

/**
 * The queue: records that are pending, each until it has ended. `owner` is the incarnation of the node that may attempt it;
 * null: any node may claim it; `heldBack`: none may, because an earlier one of its line comes first, and its next attempt is
 * at 0. There is no index on `owner`: it doubled the price of everything, and only a rescue needs it.
 */
export const pending = pgTable(
  "pending",
  {
    ...recordColumns(),
    webhookKey: whole("webhook_key").notNull(),
    owner: integer("owner"),
    nextAttemptAt: whole("next_attempt_at").notNull(),
    /** As written by `beforeText`, while the run that a replay began is waiting. */
    before: text("before"),
    /** Hash of the line in which it waits (`lines.ts`). */
    orderHash: whole("order_hash"),
  },
  (t) => [
    uniqueIndex("pending_by_tenant").on(t.tenantKey, t.eventSeq.desc().nullsFirst(), t.key),
    // With `include (status_code, webhook_key, type_hash)`.
    index("pending_by_code")
      .on(t.tenantKey, t.errorCode, t.eventSeq.desc().nullsFirst(), t.key)
      .where(sql`${t.errorCode} is not null`),
    // With `include (type_hash)`.
    index("pending_by_failure")
      .on(t.tenantKey, t.failureKey, t.eventSeq.desc().nullsFirst(), t.key)
      .where(sql`${t.failureKey} is not null`),
    index("pending_due_of_webhook").on(t.webhookKey, t.nextAttemptAt).where(sql`${t.owner} is null`),
    index("pending_due").on(t.nextAttemptAt, t.webhookKey).where(sql`${t.owner} is null`),
    // Two heads of a line would be a defect: then neither is written.
    uniqueIndex("pending_head_of_line")
      .on(t.webhookKey, t.orderHash)
      .where(sql`${t.orderHash} is not null and ${t.owner} is distinct from ${sql.raw(String(heldBack))}`),
    index("pending_held_back")
      .on(t.webhookKey, t.orderHash, t.eventSeq)
      .where(sql`${t.owner} = ${sql.raw(String(heldBack))}`),
    // With `include (webhook_key, type_hash)`. Only a walk that filters by replay uses it: returning records has an index of
    // its own.
    index("pending_by_replay")
      .on(t.tenantKey, t.replayKey, t.eventSeq.desc().nullsFirst(), t.key)
      .where(sql`${t.replayKey} > 0`),
    index("pending_to_return").on(t.tenantKey, t.replayKey).where(sql`${t.before} is not null`),
  ],
);

/**
 * History: records that have ended, partitioned like their events. Rows are only added, except by replays. State 1:
 * delivered; 2: failed; 3: skipped.
 */
export const delivery = pgTable(
  "delivery",
  {
    ...recordColumns(),
    /** Null for the record of an event that found no webhook. */
    webhookKey: whole("webhook_key"),
    state: smallint("state").notNull(),
    finishedAt: whole("finished_at").notNull(),
  },
  (t) => [
    // With `include (state, webhook_key, type_hash)`, so that a filtered walk stays inside the index.
    uniqueIndex("delivery_by_tenant").on(t.tenantKey, t.eventSeq.desc().nullsFirst(), t.key),
    // As long as the one above, for the same reason; few records have failed.
    index("delivery_failed")
      .on(t.tenantKey, t.eventSeq.desc().nullsFirst(), t.key, t.webhookKey)
      .where(sql`${t.state} = 2`),
    // Covers failed records, since nothing else has a code. With `include (status_code, webhook_key, type_hash)`.
    index("delivery_by_code")
      .on(t.tenantKey, t.errorCode, t.eventSeq.desc().nullsFirst(), t.key)
      .where(sql`${t.errorCode} is not null`),
    // Covers replayed records. With `include (state, webhook_key, type_hash)`.
    index("delivery_by_replay")
      .on(t.tenantKey, t.replayKey, t.eventSeq.desc().nullsFirst(), t.key)
      .where(sql`${t.replayKey} is not null`),
    // With `include (type_hash)`.
    index("delivery_by_failure")
      .on(t.tenantKey, t.failureKey, t.eventSeq.desc().nullsFirst(), t.key)
      .where(sql`${t.failureKey} is not null`),
    check("delivery_state", sql`${t.state} in (1, 2, 3)`),
    check("delivery_without_webhook_has_ended", sql`${t.webhookKey} is not null or ${t.state} in (2, 3)`),
  ],
);

/** Groups of similar failures; groups with fixed keys have no row (`domain/failure-groups.ts`). */
export const failureGroup = pgTable(
  "failure_group",
  {
    tenantKey: whole("tenant_key").notNull(),
    /** From `failure-key.ts`. */
    key: whole("key").notNull(),
    webhookKey: whole("webhook_key"),
    code: text("code").$type<FailureCode>().notNull(),
    status: integer("status"),
    line: text("line").notNull(),
  },
  (t) => [primaryKey({ columns: [t.tenantKey, t.key] })],
);

/**
 * Counts the records that have a group as their `failureKey`, by the hour in which their events came; for the lanes see
 * `usage`.
 */
export const failureCount = pgTable(
  "failure_count",
  {
    tenantKey: whole("tenant_key").notNull(),
    failureKey: whole("failure_key").notNull(),
    /** Hours since the Unix epoch. */
    hour: integer("hour").notNull(),
    /** Slot of the lane. */
    slot: smallint("slot").notNull(),
    waiting: whole("waiting").notNull(),
    failed: whole("failed").notNull(),
    /** The latest failure of any record that was ever counted here. */
    lastFailedAt: whole("last_failed_at").notNull(),
  },
  (t) => [primaryKey({ columns: [t.tenantKey, t.failureKey, t.hour, t.slot] })],
);

/** The log of attempts, with the latest ones of each record, partitioned like their events. */
export const attempt = pgTable(
  "attempt",
  {
    eventSeq: whole("event_seq").notNull(),
    tenantKey: whole("tenant_key").notNull(),
    key: whole("key").notNull(),
    webhookKey: whole("webhook_key").notNull(),
    number: integer("number").notNull(),
    startedAt: whole("started_at").notNull(),
    durationMs: integer("duration_ms").notNull(),
    statusCode: integer("status_code"),
    error: text("error"),
    responseBody: bytes("response_body"),
    replayKey: whole("replay_key"),
    errorCode: text("error_code").$type<FailureCode>(),
    /** As written by `headText`. */
    answerHead: text("answer_head"),
  },
  (t) => [primaryKey({ columns: [t.eventSeq, t.tenantKey, t.key] })],
);
