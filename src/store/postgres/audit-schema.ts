import { sql } from "drizzle-orm";
import { index, integer, pgTable, text } from "drizzle-orm/pg-core";
import { whole } from "./columns.ts";

/** Who did what (`src/domain/audit.ts`). Refers to accounts by their ids, because it outlives them. */
export const audit = pgTable(
  "audit",
  {
    key: whole("key").generatedByDefaultAsIdentity().primaryKey(),
    /** Empty: the act is about the server. */
    tenantId: text("tenant_id").notNull(),
    action: text("action").notNull(),
    actor: text("actor").notNull(),
    via: text("via"),
    address: text("address"),
    times: integer("times").notNull(),
    at: whole("at").notNull(),
    lastAt: whole("last_at").notNull(),
    /** JSON. */
    detail: text("detail"),
  },
  (t) => [
    index("audit_by_tenant").on(t.tenantId, t.at, t.key),
    index("audit_by_time").on(t.at, t.key),
    index("audit_of_strangers").on(t.tenantId, t.at, t.key).where(sql`${t.actor} = 'stranger'`),
  ],
);
