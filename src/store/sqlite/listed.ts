import { type SQL, sql } from "drizzle-orm";
import * as t from "./schema.ts";

/** The records of an account that are in its lists (`filing.ts`), in the words by which SQLite knows their indexes. */
export const listedOf = (tenantKey: number): SQL =>
  sql`${t.delivery.tenantKey} = ${tenantKey} and ${t.delivery.filed} = 1`;
