import { sql } from "drizzle-orm";
import { boolean, check, integer, pgTable, primaryKey, text } from "drizzle-orm/pg-core";
import { bytes, whole } from "./columns.ts";
import { tenant } from "./schema.ts";

/** The tables of the inboxes. Which inbox is whose is not stored: its address is derived from the tenant's id. */

/** How an inbox answers, if that was set. */
export const inboxSetting = pgTable(
  "inbox_setting",
  {
    tenantKey: whole("tenant_key")
      .primaryKey()
      .references(() => tenant.key),
    status: integer("status").notNull(),
    delayMs: integer("delay_ms").notNull(),
    silent: boolean("silent").notNull(),
  },
  (t) => [
    check("inbox_setting_status", sql`${t.status} between 200 and 599`),
    check("inbox_setting_delay", sql`${t.delayMs} >= 0`),
  ],
);

/** The latest deliveries of each inbox, in the order of their keys. They are copies: a test has no event to refer to. */
export const inboxDelivery = pgTable(
  "inbox_delivery",
  {
    key: whole("key").generatedByDefaultAsIdentity(),
    id: text("id").notNull(),
    tenantKey: whole("tenant_key")
      .notNull()
      .references(() => tenant.key),
    receivedAt: whole("received_at").notNull(),
    eventId: text("event_id").notNull(),
    /** Null: it gets no answer. */
    answeredStatus: integer("answered_status"),
    isTest: boolean("is_test").notNull(),
    /** JSON in a text column: for a JSON column the client would encode it a second time. */
    headers: text("headers").notNull(),
    body: bytes("body").notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.tenantKey, t.key] }),
    check("inbox_delivery_status", sql`${t.answeredStatus} between 200 and 599`),
  ],
);
