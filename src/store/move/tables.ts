/** What is moved, in the common form that both backends are read into and written from: rows as PostgreSQL stores them. */

export type ColumnType = "bigint" | "integer" | "smallint" | "boolean" | "text" | "bytea";

export interface Column {
  readonly name: string;
  readonly type: ColumnType;
}

export type Cell = number | string | boolean | Uint8Array | null;
/** In the order of the table's columns. */
export type Row = readonly Cell[];

export interface Table {
  /** Its name in SQLite. */
  readonly name: TableName;
  readonly columns: readonly Column[];
}

/** Parents first. */
export const tableNames = [
  "tenant",
  "tenant_usage",
  "api_key",
  "signing_key",
  "signing_secret",
  "ended_session",
  "login_address",
  "webhook",
  "replay_label",
  "replay",
  "idempotency",
  "stat",
  "webhook_stat",
  "refused_events",
  "failure_group",
  "failure_count",
  "billing_account",
  "saved_card",
  "plan_period",
  "invoice",
  "invoice_day",
  "charge",
  "card_verification",
  "sandbox_card",
  "sandbox_transaction",
  "inbox_setting",
  "inbox_delivery",
  "audit",
  "mail",
  "password_reset",
  "event",
  "delivery",
  "attempt",
] as const;
export type TableName = (typeof tableNames)[number];

/** Tables that stay where they are: what a backend knows about itself, and the master key check, which the other one rewrites. */
export const ownTables = ["lane", "vault_check"] as const;

/** Columns that only one backend has, and can generate. */
export const ownColumns: Partial<Record<TableName, readonly string[]>> = {
  event: ["checksum"],
  delivery: ["filed"],
};

/** How far a table has been copied. */
export interface Progress {
  /** JSON: where the source resumes; null: from the beginning. */
  readonly position: string | null;
  readonly rows: number;
  /** Checksum of all rows so far (`checksum.ts`). */
  readonly checksum: bigint;
  readonly isDone: boolean;
}

export const untouched: Progress = { position: null, rows: 0, checksum: 0n, isDone: false };

/** Rows per batch, which is written in one transaction together with its progress. */
export const batchRows = 10_000;
/** A batch ends with the row that brings it to this size: payloads may be large. */
export const batchBytes = 8 * 2 ** 20;

export interface Batch {
  readonly rows: readonly Row[];
  /** The position after the last of them. */
  readonly position: string | null;
}

/** Whether a place can take a move: it is reserved for it already, has nothing, or has something else. */
export type Readiness = "reserved" | "empty" | "taken";

/** The side that is read. */
export interface Source {
  /** For people, without a password. */
  readonly place: string;
  count(table: Table): Promise<number>;
  /** Rows from a position on, in an order that never changes. */
  read(table: Table, position: string | null): AsyncIterable<Batch>;
  /** The highest key that was ever used in each table that never reuses keys. */
  highestKeys(): Promise<ReadonlyMap<TableName, number>>;
  /**
   * Marks the start of a move.
   * @param readinessFor what that place can take of a move
   * @param again moves what has already been moved elsewhere, if the place is empty
   * @returns the id of the move; that of the last one if it was not finished
   * @throws StartupError when the data has already been moved elsewhere
   */
  leave(place: string, readinessFor: (move: string) => Promise<Readiness>, again: boolean): Promise<string>;
  /** Marks the end of a move: no server starts on it from now on. @throws StartupError when one did in the meantime */
  markLeft(move: string): Promise<void>;
}

/** The side that is written. */
export interface Target {
  readonly place: string;
  readinessFor(move: string): Promise<Readiness>;
  /** Reserves the place for this move, if it is empty or already the move's own. @throws StartupError when it is neither */
  arrive(move: string): Promise<ReadonlyMap<string, Progress>>;
  /**
   * Writes rows and the table's new progress, in one transaction.
   * @param before the progress so far
   * @throws StartupError when it is already further, because another move writes to it
   */
  write(table: Table, rows: readonly Row[], before: Progress, after: Progress): Promise<void>;
  /** Creates the indexes of large tables, which copying does without. */
  index(onIndex: (name: string) => void): Promise<void>;
  /** The number of rows and their checksum, as they are there. */
  sum(table: Table): Promise<{ rows: number; checksum: bigint }>;
  /** Writes what comes last: new keys continue above the highest. Then everything is on disk. @throws StartupError */
  settle(highestKeys: ReadonlyMap<TableName, number>): Promise<void>;
  /** Ids of accounts that are not deleted and whose counters do not match their records. */
  miscounted(): Promise<readonly string[]>;
  /** Marks the copy as complete: a server may start on it. */
  markArrived(): Promise<void>;
}

/** The one of the two sides that supplies rows from all over a table. */
export interface Sampled {
  /** At least this many, or all. */
  sample(table: Table, atLeast: number): Iterable<readonly Row[]>;
}

/** The other side, in which they are looked up. */
export interface Searched {
  /** The rows with these keys, in any order. */
  find(table: Table, rows: readonly Row[]): Promise<readonly Row[]>;
}

/** Columns by which a row is looked up: PostgreSQL's primary keys. */
export const keyColumns = (name: TableName): readonly string[] => keys[name] ?? ["key"];

const keys: Partial<Record<TableName, readonly string[]>> = {
  tenant_usage: ["tenant_key"],
  ended_session: ["id"],
  login_address: ["tenant_key", "address"],
  idempotency: ["tenant_key", "key"],
  stat: ["tenant_key", "minute"],
  webhook_stat: ["tenant_key", "webhook_key", "minute"],
  refused_events: ["tenant_key", "month", "reason"],
  failure_group: ["tenant_key", "key"],
  failure_count: ["tenant_key", "failure_key", "hour"],
  invoice_day: ["account_key", "day"],
  sandbox_card: ["token"],
  sandbox_transaction: ["reference"],
  inbox_setting: ["tenant_key"],
  mail: ["kind", "recipient"],
  password_reset: ["tenant_key"],
  event: ["seq", "tenant_key"],
  delivery: ["tenant_key", "event_seq", "key"],
  attempt: ["event_seq", "tenant_key", "key"],
  api_key: ["tenant_key", "key"],
  signing_key: ["tenant_key", "key"],
  signing_secret: ["tenant_key", "key"],
  webhook: ["tenant_key", "key"],
  replay: ["tenant_key", "key"],
  replay_label: ["tenant_key", "key"],
  inbox_delivery: ["tenant_key", "key"],
};

/** The positions of the key columns in a row. */
export const keyPlaces = ({ name, columns }: Table): number[] =>
  keyColumns(name).map((key) => columns.findIndex((column) => column.name === key));

/** Labels are text with arbitrary characters in SQLite, and JSON in PostgreSQL. */
export const isLabel = (table: TableName, column: string): boolean =>
  (table === "replay" && column === "label") || (table === "replay_label" && column === "text");
