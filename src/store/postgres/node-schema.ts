import { sql } from "drizzle-orm";
import { bigint, check, index, integer, pgTable, primaryKey, text, timestamp } from "drizzle-orm/pg-core";
import { bytes, whole } from "./columns.ts";

/** The tables by which nodes tell each other, and by which a limit holds for all of them. */

/**
 * One row, which whoever makes a change locks until its commit: so changes are numbered in the order in which they became
 * durable, and "all up to this number" is one number.
 */
export const changeHead = pgTable(
  "change_head",
  {
    id: integer("id").primaryKey(),
    last: whole("last").notNull(),
  },
  (t) => [check("change_head_is_one_row", sql`${t.id} = 1`)],
);

/** What every node has to act on. Kept until all that live have. */
export const change = pgTable("change", {
  number: whole("number").primaryKey(),
  /** A `Change` as JSON. A text: the client would encode it once more for a column of JSON. */
  body: text("body").notNull(),
});

/** Who does the work in the background; null or one that is no more: nobody. */
export const job = pgTable("job", {
  name: text("name").primaryKey(),
  incarnation: integer("incarnation"),
});

/** Occurrences that a limit counts, the oldest first. Not logged: what is counted need not outlive a crash of the server. */
export const limitWindow = pgTable(
  "limit_window",
  {
    name: text("name").notNull(),
    /** A digest: what is counted by may be as long as a request allows. */
    key: text("key").notNull(),
    times: bigint("times", { mode: "number" }).array().notNull(),
    /** When none of them counts any more. */
    endsAt: whole("ends_at").notNull(),
  },
  (t) => [primaryKey({ columns: [t.name, t.key] }), index("limit_window_by_end").on(t.name, t.endsAt)],
);

/** Where the stream of a tenant stands; not logged. */
export const streamHead = pgTable("stream_head", {
  tenantId: text("tenant_id").primaryKey(),
  /** Another after a crash of the server: ids from before it mean nothing. */
  epoch: text("epoch").notNull(),
  lastId: whole("last_id").notNull(),
});

/** Which nodes watch the stream of a tenant; one that is no more does not. */
export const streamWatch = pgTable(
  "stream_watch",
  {
    tenantId: text("tenant_id").notNull(),
    incarnation: integer("incarnation").notNull(),
  },
  (t) => [primaryKey({ columns: [t.tenantId, t.incarnation] })],
);

/** What those who watch have been shown, for those who read on elsewhere; not logged. */
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
