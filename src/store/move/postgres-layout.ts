import { type Cell, type Column, type ColumnType, keyColumns, type Row, type Table, type TableName } from "./tables.ts";

/** How a table in the common form is laid out in PostgreSQL: what it is written to, and what it is read from. */

export interface Part {
  readonly into: string;
  /** Its columns, each with the table column that goes there. */
  readonly columns: readonly PartColumn[];
  /** Which rows go there; by default all. */
  takes?(row: Row): boolean;
}

interface PartColumn {
  readonly name: string;
  /** Null: 0 goes there. */
  readonly from: string | null;
  /** Type of that 0. @default smallint */
  readonly type?: ColumnType;
}

const statePending = 0;
/** Slot of the lane that counts; what is moved is counted by the first one. */
const slot = { name: "slot", from: null };

export function partsOf(table: Table): Part[] {
  const same = (names: readonly string[]) => names.map((name) => ({ name, from: name }));
  const names = table.columns.map(({ name }) => name);
  const without = (...others: string[]) => same(names.filter((name) => !others.includes(name)));
  switch (table.name) {
    case "tenant_usage":
      return [
        {
          into: "usage",
          columns: [
            slot,
            { name: "used", from: "events_in_month" },
            { name: "granted", from: "events_in_month" },
            ...without("events_in_month"),
          ],
        },
      ];
    case "stat":
    case "webhook_stat":
    case "refused_events":
    case "failure_count":
      return [{ into: table.name, columns: [slot, ...same(names)] }];
    case "delivery": {
      const [state, dueAt] = [names.indexOf("state"), names.indexOf("next_attempt_at")];
      return [
        {
          into: "pending",
          columns: without("state", "finished_at"),
          takes: (row) => row[state] === statePending && row[dueAt] !== null,
        },
        // Records that are held back are due at 0 and belong to owner 0.
        {
          into: "pending",
          columns: [
            { name: "owner", from: null, type: "integer" },
            { name: "next_attempt_at", from: null, type: "bigint" },
            ...without("state", "finished_at", "next_attempt_at"),
          ],
          takes: (row) => row[state] === statePending && row[dueAt] === null,
        },
        {
          into: "delivery",
          columns: without("next_attempt_at", "before", "order_hash"),
          takes: (row) => row[state] !== statePending,
        },
      ];
    }
    default:
      return [{ into: table.name, columns: same(names) }];
  }
}

const failureCountView = `select tenant_key, failure_key, hour, sum(waiting)::bigint as waiting, sum(failed)::bigint as failed,
    max(last_failed_at) as last_failed_at
  from failure_count group by tenant_key, failure_key, hour having sum(waiting) <> 0 or sum(failed) <> 0`;

/** Selects the rows of a table in the common form, unordered. The histograms of a chart's minute are not merged yet. */
export function viewOf({ name, columns }: Table): string {
  const names = columns.map((column) => column.name);
  switch (name) {
    case "tenant_usage":
      return `select tenant_key, month, (sum(used) filter (where u.used_in = month))::bigint as events_in_month,
          sum(events)::bigint as events, sum(pending)::bigint as pending, sum(delivered)::bigint as delivered,
          sum(failed)::bigint as failed, sum(skipped)::bigint as skipped
        from (select tenant_key, max(month) over (partition by tenant_key) as month, month as used_in, used, events, pending,
          delivered, failed, skipped from usage) u group by tenant_key, month`;
    case "stat":
      return `select tenant_key, minute, sum(accepted)::int as accepted, sum(delivered)::int as delivered,
          sum(failed)::int as failed, sum(attempts)::int as attempts, string_agg(latency, chr(10)) as latency
        from stat group by tenant_key, minute`;
    case "webhook_stat":
      return `select tenant_key, webhook_key, minute, sum(delivered)::int as delivered, sum(failed)::int as failed,
          sum(attempts)::int as attempts, string_agg(latency, chr(10)) as latency
        from webhook_stat group by tenant_key, webhook_key, minute`;
    case "refused_events":
      return `select tenant_key, month, reason, sum(events)::bigint as events
        from refused_events group by tenant_key, month, reason`;
    // Leaves out what the janitor would remove.
    case "failure_count":
      return failureCountView;
    case "failure_group":
      return `select ${names.map((column) => `g.${column}`).join(", ")} from failure_group g where exists (
        select 1 from (${failureCountView}) c where c.tenant_key = g.tenant_key and c.failure_key = g.key)`;
    case "replay": {
      const counted = ["delivered", "failed", "superseded"];
      const picked = names.map((column) =>
        counted.includes(column) ? `(r.${column} + coalesce(c.${column}, 0))::bigint as ${column}` : `r.${column}`,
      );
      return `select ${picked.join(", ")} from replay r left join lateral (select sum(delivered) as delivered,
          sum(failed) as failed, sum(superseded) as superseded from replay_count c
          where c.tenant_key = r.tenant_key and c.replay_key = r.key) c on true`;
    }
    case "delivery":
      return `${recordsText(names, "pending")} union all ${recordsText(names, "delivery")}`;
    default:
      return `select ${names.join(", ")} from ${name}`;
  }
}

/** Selects from one of the two tables that hold records. */
export function recordsText(names: readonly string[], from: "pending" | "delivery"): string {
  const absent: Record<string, string> =
    from === "pending"
      ? {
          state: `${statePending}::smallint as state`,
          finished_at: "null::bigint as finished_at",
          next_attempt_at: "nullif(next_attempt_at, 0) as next_attempt_at",
        }
      : {
          next_attempt_at: "null::bigint as next_attempt_at",
          before: "null::text as before",
          order_hash: "null::bigint as order_hash",
        };
  return `select ${names.map((name) => absent[name] ?? name).join(", ")} from ${from}`;
}

/** The columns in a form that the client reads quickly: `bigint` would come as text. */
export const selected = ({ columns }: Table): string =>
  columns.map(({ name, type }) => (type === "bigint" ? `${name}::float8 as ${name}` : name)).join(", ");

export const rowOf = ({ columns }: Table, found: Readonly<Record<string, Cell>>): Row =>
  columns.map(({ name }) => found[name] ?? null);

/** Columns that sort the rows in the order in which SQLite keeps them, if it has one; none contains a null. */
export const orderOf = (name: TableName): readonly string[] =>
  name === "delivery" || name === "attempt" ? ["key"] : keyColumns(name);

export const typeOf = (columns: readonly Column[], name: string) =>
  columns.find((column) => column.name === name)?.type ?? "bigint";

/** A position as a literal, for a statement that takes no parameters. */
export function literal(value: string | number, type: ColumnType): string {
  if (typeof value === "number") return `${value}::${type}`;
  // Safe whatever the text contains, and however the server reads quotes.
  return `convert_from(decode('${Buffer.from(value).toString("hex")}', 'hex'), 'UTF8')`;
}
