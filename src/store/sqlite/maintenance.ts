import type { Database } from "bun:sqlite";
import { idempotencyLifetimeMs } from "../../domain/acceptance.ts";
import { auditLifetimeMs } from "../../domain/audit.ts";
import { knownAddressLifetimeMs, removalMarginMs } from "../../domain/credentials.ts";
import { unavailable } from "../../domain/errors.ts";
import { mailRules } from "../../domain/mail.ts";
import { keptAfterErasure } from "../audit.ts";
import type { MaintenanceVerbs, TenantVerbs } from "../store.ts";
import { isStorageDamaged } from "../unless-damaged.ts";
import type { Connection } from "./connection.ts";
import { readOrRefuse, unlessDamaged } from "./damage.ts";
import type { MasterKeyCheck } from "./master-key.ts";
import type { Checkpoints } from "./pragma.ts";
import { refuse } from "./transaction.ts";
import { writeAroundDamage } from "./write-around-damage.ts";

/** SQLite's own page size, which the database keeps. */
const pageBytes = 4096;

/** Tables with a tenant's rows other than its events, children before parents. */
const tenantTables = [
  "stat",
  "webhook_stat",
  "refused_events",
  "failure_count",
  "failure_group",
  "idempotency",
  "replay",
  "replay_label",
  "inbox_delivery",
  "inbox_setting",
  "login_address",
  "password_reset",
  "webhook",
  "api_key",
  "signing_key",
  "signing_secret",
  "tenant_usage",
] as const;

interface MaintenanceDeps {
  checkpoints: Checkpoints;
  /** Absent where another program is in charge of the log. @returns false if it could not be done now */
  emptyLog?: () => Promise<boolean>;
  masterKey?: MasterKeyCheck;
}

export function maintenanceVerbs(
  { client, writer, reader, filing, reportDamage }: Connection,
  { checkpoints, emptyLog, masterKey }: MaintenanceDeps,
): Omit<MaintenanceVerbs, "forgetWebhooks"> & Pick<TenantVerbs, "eraseDeleted"> {
  const nextDeleted = client.prepare<{ key: number }, [string]>(
    `select key from tenant where deleted_at is not null and key not in (select value from json_each(?1))
     order by deleted_at limit 1`,
  );
  const someEvents = client.prepare<{ seq: number }, [number, number]>(
    "select distinct event_seq as seq from delivery where tenant_key = ?1 and filed = 1 order by event_seq limit ?2",
  );
  const deleteAttempts = client.prepare("delete from attempt where event_seq = ?1");
  const deleteDeliveries = client.prepare(
    "delete from delivery where tenant_key = ?1 and filed = 1 and event_seq = ?2",
  );
  const deleteEvent = client.prepare("delete from event where seq = ?1");
  const seqOf = client.prepare<{ seq: number }, [number]>("select event_seq as seq from delivery where key = ?1");
  const deleteDelivery = client.prepare("delete from delivery where key = ?1");
  const deleteSome = tenantTables.map((table) =>
    client.prepare(`delete from ${table} where rowid in (select rowid from ${table} where tenant_key = ?1 limit ?2)`),
  );
  const ofTenant = "tenant_id = (select id from tenant where key = ?1)";
  const deleteAudit = client.prepare(
    `delete from audit where key in (
       select key from audit where ${ofTenant} and not ${keptAfterErasure} limit ?2)`,
  );
  const stripAudit = client.prepare(
    `update audit set detail = null, address = iif(actor = 'operator', address, null) where ${ofTenant}`,
  );
  const deleteTenant = client.prepare("delete from tenant where key = ?1");

  const outlived = [
    { ...upTo(client, "idempotency", "created_at"), ageMs: idempotencyLifetimeMs },
    { ...upTo(client, "login_address", "last_login_at"), ageMs: knownAddressLifetimeMs },
    { ...upTo(client, "ended_session", "expires_at"), ageMs: removalMarginMs },
    { ...upTo(client, "signing_key", "retires_at"), ageMs: removalMarginMs },
    { ...upTo(client, "signing_secret", "expires_at"), ageMs: removalMarginMs },
    { ...upTo(client, "audit", "at"), ageMs: auditLifetimeMs },
    { ...upTo(client, "password_reset", "expires_at"), ageMs: removalMarginMs },
    { ...upTo(client, "mail", "sent_at", "due_at is null and"), ageMs: mailRules.intervalMs },
  ];

  /** Erases a record that is in no list, with its event, whose other records may be in one. */
  function eraseRecord(tenantKey: number, key: number): void {
    const found = seqOf.get(key);
    if (!found) return;
    deleteAttempts.run(found.seq);
    deleteDelivery.run(key);
    deleteDeliveries.run(tenantKey, found.seq);
    deleteEvent.run(found.seq);
  }

  /** Erases whole events with their deliveries and attempts, so that what is left always begins with a whole event. */
  function eraseEvents(tenantKey: number, limit: number): { left: number; done: boolean } {
    let left = limit;
    for (const { seq } of someEvents.all(tenantKey, limit)) {
      if (left <= 0) return { left, done: false };
      left -= deleteAttempts.run(seq).changes + deleteDeliveries.run(tenantKey, seq).changes;
      left -= deleteEvent.run(seq).changes;
    }
    return { left, done: left > 0 };
  }

  /** Deleted accounts that are partly unreadable; the others are erased all the same. */
  const unerasable = new Set<number>();

  /** True while there may be more to erase. */
  function eraseSome(tenantKey: number, limit: number): boolean {
    const { left: afterEvents, done } = eraseEvents(tenantKey, limit);
    if (!done) return true;
    let left = afterEvents;
    for (const statement of deleteSome) {
      left -= statement.run(tenantKey, left).changes;
      if (left <= 0) return true;
    }
    left -= deleteAudit.run(tenantKey, left).changes;
    if (left <= 0) return true;
    stripAudit.run(tenantKey);
    deleteTenant.run(tenantKey);
    return true;
  }

  const reportTable = ({ table }: { table: string }) => reportDamage(`The table ${table}`);

  function hasAny(one: (typeof outlived)[number], now: number): boolean {
    const answer = unlessDamaged(() => one.hasAny(now - one.ageMs));
    if (answer === null) reportTable(one);
    return answer ?? false;
  }

  const freePages = () =>
    client.query<{ free: number }, []>("select freelist_count as free from pragma_freelist_count").get()?.free ?? 0;

  /** The log has what was erased, until it is written over or emptied. */
  let isErasedInLog = false;

  let closing: Promise<void> | null = null;

  async function end(): Promise<void> {
    const filed = filing.close();
    await writer.close();
    await filed;
    await reader.close();
    try {
      if (checkpoints === "own") client.run("pragma wal_checkpoint(truncate)");
    } catch {
      // On a full disk the log stays, and with it everything that was committed: the next start finds it there.
    }
    // By force: a connection with prepared statements would stay open, and the runtime would empty its log as the process ends.
    client.close(true);
  }

  return {
    async eraseDeleted(limit) {
      const next = await readOrRefuse(
        () => reportDamage("The list of deleted accounts"),
        () => nextDeleted.get(JSON.stringify([...unerasable])),
      );
      if (next === null) return false;
      const { key } = next;
      try {
        return await writer.submit<boolean>((tx) => {
          // Filing might need the very space that erasing is to free.
          for (const unfiled of filing.take(tx, key)) eraseRecord(key, unfiled);
          return eraseSome(key, limit);
        });
      } catch (error) {
        if (!isStorageDamaged(error)) throw error;
        unerasable.add(key);
        reportDamage(`Something of the deleted account with the key ${key}, which stays until it`);
        return true;
      }
    },

    async prune(now, limit) {
      if (isErasedInLog && emptyLog) isErasedInLog = !(await emptyLog());
      const found = outlived.filter((one) => hasAny(one, now));
      if (found.length === 0) return false;
      const removed = await writeAroundDamage(
        writer,
        found,
        (_tx, some) => some.map(({ remove, ageMs }) => remove(now - ageMs, limit)),
        reportTable,
      );
      return removed.flat().some((changes) => changes >= limit);
    },

    reclaim(bytes) {
      isErasedInLog = true;
      return writer.submit<boolean>(() => {
        const before = freePages();
        if (before === 0) return false;
        client.run(`pragma incremental_vacuum(${Math.ceil(bytes / pageBytes)})`);
        const after = freePages();
        // A database without auto_vacuum keeps its free pages: asking again would never come to an end.
        return after > 0 && after < before;
      });
    },

    probe: () => writer.submit<void>(() => (masterKey && !masterKey.holds() ? refuse(masterKeyUseless()) : undefined)),

    oldestWaitingWriteMs: () => writer.lagMs(),

    close() {
      closing ??= end();
      return closing;
    },
  };
}

const masterKeyUseless = () =>
  unavailable("The master key does not match the stored secrets.", "storage_unavailable", 30);

/** Rows that were last of use at or before a given time, oldest first. */
function upTo(client: Database, table: string, column: string, condition = "") {
  const oldest = (limit: string) =>
    `select rowid from ${table} where ${condition} ${column} <= ?1 order by ${column} limit ${limit}`;
  const one = client.prepare<{ rowid: number }, [number]>(oldest("1"));
  const some = client.prepare<never, [number, number]>(`delete from ${table} where rowid in (${oldest("?2")})`);
  return {
    table,
    hasAny: (at: number) => one.get(at) !== null,
    remove: (at: number, limit: number) => some.run(at, limit).changes,
  };
}
