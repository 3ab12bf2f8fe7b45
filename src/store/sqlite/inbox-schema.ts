import { sql } from "drizzle-orm";
import { blob, check, index, integer, sqliteTable, text } from "drizzle-orm/sqlite-core";
import { tenant } from "./schema.ts";

/** The tables of the inboxes. An inbox's owner is stored nowhere: its address is derived from the tenant's id. */

/** How an inbox answers, if it has been told. */
export const inboxSetting = sqliteTable(
  "inbox_setting",
  {
    tenantKey: integer("tenant_key")
      .primaryKey()
      .references(() => tenant.key),
    status: integer("status").notNull(),
    delayMs: integer("delay_ms").notNull(),
    silent: integer("silent", { mode: "boolean" }).notNull(),
  },
  (t) => [
    check("inbox_setting_status", sql`${t.status} between 200 and 599`),
    check("inbox_setting_delay", sql`${t.delayMs} >= 0`),
  ],
);

/** The newest deliveries of each inbox, in the order of their keys. They are copies: a test has no event to refer to. */
export const inboxDelivery = sqliteTable(
  "inbox_delivery",
  {
    key: integer("key").primaryKey(),
    id: text("id").notNull(),
    tenantKey: integer("tenant_key")
      .notNull()
      .references(() => tenant.key),
    receivedAt: integer("received_at").notNull(),
    eventId: text("event_id").notNull(),
    /** Null when it is not answered. */
    answeredStatus: integer("answered_status"),
    isTest: integer("is_test", { mode: "boolean" }).notNull(),
    headers: text("headers", { mode: "json" }).$type<Readonly<Record<string, string>>>().notNull(),
    body: blob("body", { mode: "buffer" }).notNull(),
  },
  (t) => [
    index("inbox_delivery_by_tenant").on(t.tenantKey, t.key),
    check("inbox_delivery_status", sql`${t.answeredStatus} between 200 and 599`),
  ],
);
