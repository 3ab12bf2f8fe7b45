import { Database } from "bun:sqlite";
import { systemClock } from "../../../../src/lib/clock.ts";
import { openStore } from "../../../../src/store/open.ts";

/** One thing that was committed. `was` and `is` are the columns of its row, before and after. */
export type Entry =
  | { n: number; of: "event"; was: null; is: EventRow }
  | { n: number; of: "delivery"; was: DeliveryRow | null; is: DeliveryRow | null }
  | { n: number; of: "attempt"; was: null; is: AttemptRow }
  | { n: number; of: "webhook"; was: WebhookRow | null; is: WebhookRow | null }
  | { n: number; of: "replay"; was: ReplayRow | null; is: ReplayRow }
  | { n: number; of: "tenant"; was: TenantRow; is: TenantRow };

export interface EventRow {
  seq: number;
  tenant_key: number;
  ordering_key: string | null;
}
export interface DeliveryRow {
  key: number;
  tenant_key: number;
  event_seq: number;
  webhook_key: number | null;
  state: number;
  run: number;
  attempts_in_run: number;
  attempts: number;
  next_attempt_at: number | null;
  error_reason: string | null;
  replay_key: number | null;
  order_hash: number | null;
}
export interface AttemptRow {
  tenant_key: number;
  event_seq: number;
  webhook_key: number;
  number: number;
  started_at: number;
  status_code: number | null;
}
export interface WebhookRow {
  key: number;
  tenant_key: number;
  url: string;
  removed_at: number | null;
  disabled_at: number | null;
  ordered: number;
}
export interface ReplayRow {
  key: number;
  id: string;
  tenant_key: number;
  kind: "single" | "timeline" | "all" | "failed";
  phase: "waiting" | "queueing" | "queued" | "completed" | "cancelled";
  from_seq: number;
  to_seq: number;
  selected: number;
  queued: number;
  delivered: number;
  failed: number;
  superseded: number;
  skipped: number;
  returned: number;
}
export interface TenantRow {
  key: number;
  deleted_at: number | null;
}

const columns = {
  event: ["seq", "tenant_key", "ordering_key"],
  delivery: [
    "key",
    "tenant_key",
    "event_seq",
    "webhook_key",
    "state",
    "run",
    "attempts_in_run",
    "attempts",
    "next_attempt_at",
    "error_reason",
    "replay_key",
    "order_hash",
  ],
  attempt: ["tenant_key", "event_seq", "webhook_key", "number", "started_at", "status_code"],
  webhook: ["key", "tenant_key", "url", "removed_at", "disabled_at", "ordered"],
  replay: [
    "key",
    "id",
    "tenant_key",
    "kind",
    "phase",
    "from_seq",
    "to_seq",
    "selected",
    "queued",
    "delivered",
    "failed",
    "superseded",
    "skipped",
    "returned",
  ],
  tenant: ["key", "deleted_at"],
} as const;

/** What is looked at; the rest of an update is nobody's business. */
const events: readonly { of: keyof typeof columns; on: string; was: boolean; is: boolean }[] = [
  { of: "event", on: "insert", was: false, is: true },
  { of: "delivery", on: "insert", was: false, is: true },
  // Not when it is filed, which changes nothing of these.
  { of: "delivery", on: `update of ${columns.delivery.join(", ")}`, was: true, is: true },
  { of: "delivery", on: "delete", was: true, is: false },
  { of: "attempt", on: "insert", was: false, is: true },
  { of: "webhook", on: "insert", was: false, is: true },
  { of: "webhook", on: "update of removed_at, disabled_at, ordered", was: true, is: true },
  { of: "webhook", on: "delete", was: true, is: false },
  { of: "replay", on: "insert", was: false, is: true },
  { of: "replay", on: "update", was: true, is: true },
  { of: "tenant", on: "update of deleted_at", was: true, is: true },
];

const rowOf = (side: "old" | "new", names: readonly string[]) =>
  `json_object(${names.map((name) => `'${name}', ${side}.${name}`).join(", ")})`;

/**
 * Makes an empty database that remembers all that is ever committed to it: triggers write it down in the transactions of
 * the program itself, so what is rolled back is not there and what is there was on disk, in this order.
 */
export async function makeTemplate(dataDir: string): Promise<void> {
  const { store } = await openStore({ dataDir, clock: systemClock, secondThread: false });
  await store.close();
  const client = new Database(`${dataDir}/postrider.db`);
  client.run("create table witness (n integer primary key, entry text not null)");
  events.forEach(({ of, on, was, is }, i) => {
    const entry = `json_object('of', '${of}', 'was', ${was ? rowOf("old", columns[of]) : "null"}, 'is', ${is ? rowOf("new", columns[of]) : "null"})`;
    client.run(
      `create trigger witness_${i} after ${on} on ${of} begin insert into witness (entry) values (${entry}); end`,
    );
  });
  client.run("pragma wal_checkpoint(truncate)");
  client.close();
}

/** All that was ever committed, in order. */
export function readWitness(client: Database): Entry[] {
  return client
    .query<{ n: number; entry: string }, []>("select n, entry from witness order by n")
    .all()
    .map(({ n, entry }) => ({ n, ...JSON.parse(entry) }) as Entry);
}
