import type { Database } from "bun:sqlite";
import type { BunSQLiteDatabase } from "drizzle-orm/bun-sqlite";
import type { AuditLog } from "./audit-log.ts";
import type { BillingRows } from "./billing-rows.ts";
import type { DamageReport } from "./damage.ts";
import type { Filing } from "./filing.ts";
import type { HoldTenant } from "./held-tenants.ts";
import type { BooksFile } from "./open-books.ts";
import type { Ownership } from "./ownership.ts";
import type { Queries } from "./queries.ts";
import type { Reader } from "./reader.ts";
import type { RowKeys } from "./row-keys.ts";
import type { Writer } from "./writer.ts";

/** What every group of verbs is built on. */
export interface Connection {
  readonly client: Database;
  readonly db: BunSQLiteDatabase;
  readonly writer: Writer;
  readonly hold: HoldTenant;
  readonly rowKeys: RowKeys;
  readonly ownership: Ownership;
  readonly filing: Filing;
  readonly billing: BillingRows;
  readonly books: BooksFile;
  readonly audit: AuditLog;
  /** Reads that are quick enough for the event loop. */
  readonly queries: Queries;
  /** The same reads on a connection in a Worker, for those that may take long. */
  readonly reader: Reader;
  readonly reportDamage: DamageReport;
}
