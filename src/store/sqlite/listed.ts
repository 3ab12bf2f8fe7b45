import { type SQL, sql } from "drizzle-orm";
import * as t from "./schema.ts";

/** The records in an account's lists (`filing.ts`), phrased so that SQLite recognizes their indexes. */
export const listedOf = (tenantKey: number): SQL =>
  sql`${t.delivery.tenantKey} = ${tenantKey} and ${t.delivery.filed} = 1`;
