import { idempotencyLifetimeMs } from "../../domain/acceptance.ts";
import { auditLifetimeMs } from "../../domain/audit.ts";
import { knownAddressLifetimeMs, removalMarginMs } from "../../domain/credentials.ts";
import { unavailable } from "../../domain/errors.ts";
import { mailRules } from "../../domain/mail.ts";
import type { Clock } from "../../lib/clock.ts";
import type { MaintenanceVerbs } from "../store.ts";
import type { Connection } from "./connection.ts";
import { createFailureSweep } from "./empty-failures.ts";
import { storageUnavailable } from "./faults.ts";
import type { Lanes } from "./lanes.ts";
import type { MasterKeyCheck } from "./master-key.ts";
import { dropPartitions, makePartitions, partitionAt } from "./partitions.ts";
import type { QueueVacuum } from "./queue-vacuum.ts";

export interface Upkeep {
  /** The clock for pauses. */
  readonly clock: Pick<Clock, "monotonicMs">;
  readonly vacuum: Pick<QueueVacuum, "look">;
  /** What accepts and settles: a server that cannot reach its lanes is not ready, however well everything else works. */
  lanes: Pick<Lanes, "reach">;
}

/** Rows that have outlived their use: everything up to this many milliseconds before now. */
const outlived = [
  { text: deleteUpTo("idempotency", "created_at"), ageMs: idempotencyLifetimeMs },
  { text: deleteUpTo("login_address", "last_login_at"), ageMs: knownAddressLifetimeMs },
  { text: deleteUpTo("ended_session", "expires_at"), ageMs: removalMarginMs },
  { text: deleteUpTo("signing_key", "retires_at"), ageMs: removalMarginMs },
  { text: deleteUpTo("signing_secret", "expires_at"), ageMs: removalMarginMs },
  { text: deleteUpTo("audit", "at"), ageMs: auditLifetimeMs },
  { text: deleteUpTo("password_reset", "expires_at"), ageMs: removalMarginMs },
  { text: deleteUpTo("mail", "sent_at", "due_at is null and"), ageMs: mailRules.intervalMs },
];

function deleteUpTo(table: string, column: string, condition = ""): string {
  return `delete from ${table} where ctid = any(array(
    select ctid from ${table} where ${condition} ${column} <= $1::bigint order by ${column} limit $2::int)) returning 1`;
}

/** Changes that every node not known to be dead has heeded. A node that joins later has kept nothing from before. */
const heededText = `delete from change where number = any(array(
  select number from change where number <= (select min(heeded) from node) order by number limit $1::int)) returning 1`;

/** How long a client that comes back can resume. The heads go with their accounts. */
const streamLifetime = "interval '2 minutes'";

const streamTexts = [
  `delete from stream_message where ctid = any(array(
    select ctid from stream_message where at < clock_timestamp() - ${streamLifetime} order by at limit $1::int)) returning 1`,
  `delete from stream_head where ctid = any(array(
    select ctid from stream_head where not exists (
      select 1 from tenant where tenant.id = stream_head.tenant_id and deleted_at is null) limit $1::int
    for update skip locked)) returning 1`,
];

/** How often to check whether a month has become empty. */
const dropEveryMs = 3_600_000;

export function maintenanceVerbs(
  { pool, writes, node, clock }: Connection,
  upkeep: Upkeep,
  masterKey?: MasterKeyCheck,
): Pick<MaintenanceVerbs, "prune" | "probe" | "reclaim"> {
  let droppedAt = Number.NEGATIVE_INFINITY;
  const sweepFailures = createFailureSweep(upkeep.clock.monotonicMs);

  /** Records and attempts carry the number of their event, so nothing from before it is left. */
  async function oldestSeq(): Promise<number> {
    const [oldest] = await pool.read<{ seq: number | null }>("select min(seq)::float8 as seq from event");
    return oldest?.seq ?? partitionAt("month", clock.now()).fromSeq;
  }

  return {
    async prune(now, limit) {
      // Once a minute is often enough: two of them are ready in advance.
      await makePartitions(pool, "month", now);
      return writes.submit(async (tx) => {
        const { run } = tx;
        const removed = [];
        for (const { text, ageMs } of outlived) removed.push(await run(text, [now - ageMs, limit]));
        for (const text of [heededText, ...streamTexts]) removed.push(await run(text, [limit]));
        await sweepFailures(tx);
        return removed.some((rows) => rows.length >= limit);
      });
    },

    async probe() {
      await writes.submit(async (tx) => {
        const own = node();
        const written = await tx.run("update node set heeded = heeded where incarnation = $1::int returning 1", [
          own.incarnation,
        ]);
        if (written.length === 0) throw storageUnavailable("passing");
        if (masterKey && !(await masterKey.holds(tx))) throw masterKeyUseless();
      });
      await upkeep.lanes.reach();
    },

    // Autovacuum gives back the space of other tables in time; months of which nothing is left are dropped right away.
    async reclaim() {
      const now = upkeep.clock.monotonicMs();
      if (now - droppedAt >= dropEveryMs) {
        droppedAt = now;
        await dropPartitions(pool, await oldestSeq());
      }
      await upkeep.vacuum.look();
      return false;
    },
  };
}

const masterKeyUseless = () =>
  unavailable("The master key does not match the stored secrets.", "storage_unavailable", 30);
