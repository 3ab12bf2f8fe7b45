/** What is moved, in the one form that both backends are read in and written from: a row as PostgreSQL has it. */

export type ColumnType = "bigint" | "integer" | "smallint" | "boolean" | "text" | "bytea";

export interface Column {
  readonly name: string;
  readonly type: ColumnType;
}

export type Cell = number | string | boolean | Uint8Array | null;
/** In the order of the table's columns. */
export type Row = readonly Cell[];

export interface Table {
  /** As SQLite has it. */
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

/** Stay where they are: what a backend knows of itself, and the master key's test, which the other one writes anew. */
export const ownTables = ["lane", "vault_check"] as const;

/** Columns that only one backend has, and can make. */
export const ownColumns: Partial<Record<TableName, readonly string[]>> = {
  event: ["checksum"],
  delivery: ["filed"],
};

/** How far a table is copied. */
export interface Progress {
  /** JSON: where the source goes on; null: at the beginning. */
  readonly position: string | null;
  readonly rows: number;
  /** Of all rows so far (`checksum.ts`). */
  readonly checksum: bigint;
  readonly isDone: boolean;
}

export const untouched: Progress = { position: null, rows: 0, checksum: 0n, isDone: false };

/** Rows of a batch, which with how far it got is one transaction. */
export const batchRows = 10_000;
/** A batch ends with the row that has brought it there: payloads may be large. */
export const batchBytes = 8 * 2 ** 20;

export interface Batch {
  readonly rows: readonly Row[];
  /** After the last of them. */
  readonly position: string | null;
}

/** The side that is read. */
export interface Source {
  /** For people, without a password. */
  readonly place: string;
  count(table: Table): Promise<number>;
  /** Rows from a position on, in an order that never changes. */
  read(table: Table, position: string | null): AsyncIterable<Batch>;
  /** Highest key that each table ever gave, where no key is given twice. */
  highestKeys(): Promise<ReadonlyMap<TableName, number>>;
  /**
   * Marks the beginning.
   * @param isArriving whether a move is still under way at that place
   * @returns the id of the move: that of the last one, if it did not end
   * @throws StartupError when the data is somewhere else by now
   */
  leave(place: string, isArriving: (move: string) => Promise<boolean>): Promise<string>;
  /** Marks the end: no server starts on it from now on. @throws StartupError when one did meanwhile */
  markLeft(move: string): Promise<void>;
}

/** The side that is written. */
export interface Target {
  readonly place: string;
  isArriving(move: string): Promise<boolean>;
  /** Takes it for this move, if it is empty or the move's own. @throws StartupError when it is neither */
  arrive(move: string): Promise<ReadonlyMap<string, Progress>>;
  /**
   * Writes rows and how far the table is then, in one transaction.
   * @param before how far it was
   * @throws StartupError when it was further, as another move writes to it
   */
  write(table: Table, rows: readonly Row[], before: Progress, after: Progress): Promise<void>;
  /** Makes the indexes of large tables, which the copying does without. */
  index(onIndex: (name: string) => void): Promise<void>;
  /** Rows and their checksum as they are there. */
  sum(table: Table): Promise<{ rows: number; checksum: bigint }>;
  /** What is written at the end: keys go on above the highest. All of it is on disk then. @throws StartupError */
  settle(highestKeys: ReadonlyMap<TableName, number>): Promise<void>;
  /** Ids of accounts that live, and whose counters are not what their records say. */
  miscounted(): Promise<readonly string[]>;
  /** A server may start on it. */
  markArrived(): Promise<void>;
}

/** The side, of the two, that gives rows from all over a table. */
export interface Sampled {
  /** At least so many, or all. */
  sample(table: Table, atLeast: number): Iterable<readonly Row[]>;
}

/** And the one in which they are looked for. */
export interface Searched {
  /** The rows with these keys, in any order. */
  find(table: Table, rows: readonly Row[]): Promise<readonly Row[]>;
}

/** Columns by which a row is found; SQLite's primary keys. */
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

/** Their place in a row. */
export const keyPlaces = ({ name, columns }: Table): number[] =>
  keyColumns(name).map((key) => columns.findIndex((column) => column.name === key));

/** Labels are texts with any character in SQLite, and JSON in PostgreSQL. */
export const isLabel = (table: TableName, column: string): boolean =>
  (table === "replay" && column === "label") || (table === "replay_label" && column === "text");
