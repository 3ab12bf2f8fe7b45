import { sql } from "drizzle-orm";
import { bigint, check, index, integer, pgTable, primaryKey, text, timestamp } from "drizzle-orm/pg-core";
import { bytes, whole } from "./columns.ts";

/** The tables through which nodes inform each other, and through which a limit holds for all of them. */

/**
 * One row, locked by whoever makes a change until it commits: so changes are numbered in the order in which they became
 * durable, and "all up to this number" is a single number.
 */
export const changeHead = pgTable(
  "change_head",
  {
    id: integer("id").primaryKey(),
    last: whole("last").notNull(),
  },
  (t) => [check("change_head_is_one_row", sql`${t.id} = 1`)],
);

/** What every node has to act on. Kept until all living nodes have. */
export const change = pgTable("change", {
  number: whole("number").primaryKey(),
  /** A `Change` as JSON, in a text column: for a JSON column the client would encode it a second time. */
  body: text("body").notNull(),
});

/** Who does the background work; null, or a node that no longer exists: nobody. */
export const job = pgTable("job", {
  name: text("name").primaryKey(),
  incarnation: integer("incarnation"),
});

/** Occurrences that a limit counts, oldest first. Unlogged: the counts need not survive a crash of the server. */
export const limitWindow = pgTable(
  "limit_window",
  {
    name: text("name").notNull(),
    /** A digest: the key itself may be as long as a request allows. */
    key: text("key").notNull(),
    times: bigint("times", { mode: "number" }).array().notNull(),
    /** When none of them counts any longer. */
    endsAt: whole("ends_at").notNull(),
  },
  (t) => [primaryKey({ columns: [t.name, t.key] }), index("limit_window_by_end").on(t.name, t.endsAt)],
);

/** The position of a tenant's stream; unlogged. */
export const streamHead = pgTable("stream_head", {
  tenantId: text("tenant_id").primaryKey(),
  /** Changes after a crash of the server: ids from before it mean nothing. */
  epoch: text("epoch").notNull(),
  lastId: whole("last_id").notNull(),
});

/** Which nodes watch a tenant's stream; one that no longer exists does not. */
export const streamWatch = pgTable(
  "stream_watch",
  {
    tenantId: text("tenant_id").notNull(),
    incarnation: integer("incarnation").notNull(),
  },
  (t) => [primaryKey({ columns: [t.tenantId, t.incarnation] })],
);

/** What watchers have been shown, for those who resume on another node; unlogged. */
export const streamMessage = pgTable(
  "stream_message",
  {
    tenantId: text("tenant_id").notNull(),
    id: whole("id").notNull(),
    body: bytes("body").notNull(),
    at: timestamp("at", { withTimezone: true }).notNull(),
  },
  (t) => [primaryKey({ columns: [t.tenantId, t.id] }), index("stream_message_by_time").on(t.at)],
);
