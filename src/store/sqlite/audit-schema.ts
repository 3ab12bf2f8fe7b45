import { sql } from "drizzle-orm";
import { index, integer, sqliteTable, text } from "drizzle-orm/sqlite-core";

/** Who did what (`src/domain/audit.ts`). It refers to accounts by id, because it outlives them. */
export const audit = sqliteTable(
  "audit",
  {
    key: integer("key").primaryKey({ autoIncrement: true }),
    /** Empty when the act is about the server. */
    tenantId: text("tenant_id").notNull(),
    action: text("action").notNull(),
    actor: text("actor").notNull(),
    via: text("via"),
    address: text("address"),
    times: integer("times").notNull(),
    at: integer("at").notNull(),
    lastAt: integer("last_at").notNull(),
    /** JSON. */
    detail: text("detail"),
  },
  (t) => [
    index("audit_by_tenant").on(t.tenantId, t.at, t.key),
    index("audit_by_time").on(t.at, t.key),
    index("audit_of_strangers").on(t.tenantId, t.at, t.key).where(sql`${t.actor} = 'stranger'`),
  ],
);
