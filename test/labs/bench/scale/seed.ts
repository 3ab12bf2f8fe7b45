import { Database, type Statement } from "bun:sqlite";
import { join } from "node:path";
import { openDataDir } from "../../../../src/data-dir.ts";
import type { Tenant } from "../../../../src/domain/tenant.ts";
import { utcMonth } from "../../../../src/domain/tenant-state.ts";
import type { Webhook } from "../../../../src/domain/webhook.ts";
import { systemClock } from "../../../../src/lib/clock.ts";
import { createVault } from "../../../../src/lib/vault.ts";
import { failureKeyOf, hourOf } from "../../../../src/store/failure-key.ts";
import { addCount, type Histogram, latencyBucket, writeHistogram } from "../../../../src/store/latency.ts";
import { openStore } from "../../../../src/store/open.ts";
import { databaseFile } from "../../../../src/store/sqlite/open.ts";
import { stateDelivered, stateFailed, statePending } from "../../../../src/store/sqlite/schema.ts";
import { showProgress } from "../output.ts";
import { createAccounts, findAccount } from "./accounts.ts";
import {
  attemptsOf,
  createPayloads,
  type History,
  type PastAttempt,
  type PastEvent,
  statusOfSuccess,
  tenants,
} from "./history.ts";

const minuteMs = 60_000;
const eventsInTransaction = 20_000;
const cacheKib = 512 * 1024;
const logPages = 50_000;

/** A tenant as the rows name it, with its counters. */
interface Owner {
  key: number;
  webhook: Pick<Webhook, "key" | "url">;
  /** Of its latest event. */
  month: number;
  eventsInMonth: number;
  events: number;
  pending: number;
  delivered: number;
  failed: number;
}

/** What happened in one minute of one tenant. */
interface Minute {
  tenantKey: number;
  minute: number;
  accepted: number;
  delivered: number;
  failed: number;
  attempts: number;
  latency: Histogram;
}

/**
 * Writes a history into a new data directory. The store makes the schema and the accounts; the rows of the events, as many
 * as it would take hours to deliver, are written past it, into the tables and indexes as they stand and in the order in
 * which the store would have written them, so that the pages of the file lie as they would.
 */
export async function seed(dataDir: string, history: History): Promise<void> {
  const owners = await createOwners(dataDir, history);
  const client = new Database(join(dataDir, databaseFile), { readwrite: true, strict: true });
  try {
    // Whoever is interrupted seeds anew, so nothing has to be safe meanwhile.
    for (const pragma of ["synchronous = off", `wal_autocheckpoint = ${logPages}`, `cache_size = -${cacheKib}`]) {
      client.query(`pragma ${pragma}`).all();
    }
    writeRows(client, history, owners);
    writeCounters(client, history, owners);
  } finally {
    client.close();
  }
}

async function createOwners(dataDir: string, history: History): Promise<Owner[]> {
  const folder = openDataDir(dataDir);
  const { store } = await openStore({ dataDir: folder.path, clock: systemClock });
  try {
    await createAccounts(store, createVault(folder.secrets.masterKey), history.startsAt);
    const accounts = await Promise.all(Array.from({ length: tenants }, (_, tenant) => findAccount(store, tenant)));
    return await Promise.all(accounts.map(async (account) => ownerOf(account, await store.webhooks(account.key))));
  } finally {
    await store.close();
    folder.release();
  }
}

function ownerOf({ key, id }: Tenant, [webhook]: Webhook[]): Owner {
  if (!webhook) throw new Error(`The seeded account ${id} has no webhook.`);
  return { key, webhook, month: 0, eventsInMonth: 0, events: 0, pending: 0, delivered: 0, failed: 0 };
}

function writeRows(client: Database, history: History, owners: readonly Owner[]): void {
  const insert = prepareInserts(client);
  const payloadOf = createPayloads();
  const minutes = new Map<number, Minute>();
  let written = 0;
  let attemptKey = 0;
  let minuteNow = 0;

  function minuteOf({ key }: Owner, at: number): Minute {
    const minute = Math.floor(at / minuteMs);
    const id = minute * (tenants + 1) + key;
    let found = minutes.get(id);
    if (!found) {
      found = { tenantKey: key, minute, accepted: 0, delivered: 0, failed: 0, attempts: 0, latency: [] };
      minutes.set(id, found);
    }
    return found;
  }

  /** Retries fall into the minute after, so that one is kept open. */
  function writeMinutes(before: number): void {
    for (const [id, { tenantKey, minute, accepted, delivered, failed, attempts, latency }] of minutes) {
      if (minute >= before) continue;
      insert.stat.run(tenantKey, minute, accepted, delivered, failed, attempts, writeHistogram(latency));
      minutes.delete(id);
    }
  }

  function writeAttempt(owner: Owner, event: PastEvent, attempt: PastAttempt, seq: number, number: number): void {
    attemptKey += 1;
    const { startedAt, statusCode } = attempt;
    const reason = reasonOf(owner, attempt);
    insert.attempt.run(
      attemptKey,
      owner.key,
      seq,
      owner.webhook.key,
      number,
      startedAt,
      event.durationMs,
      statusCode,
      reason,
      reason && failedAs,
    );
    const minute = minuteOf(owner, attempt.endedAt);
    minute.attempts += 1;
    addCount(minute.latency, latencyBucket(event.durationMs), 1);
    if (attempt.isLast) minute[reason === null ? "delivered" : "failed"] += 1;
  }

  const failures = createFailures(client);
  client.run("begin");
  for (const event of history.walk()) {
    const owner = owners[event.tenant] as Owner;
    const seq = history.seqOf(written);
    insert.event.run(seq, owner.key, history.tailOf(written), payloadOf(written));
    const attempts = attemptsOf(event);
    const last = attempts.at(-1);
    if (last && event.fate === "failed") failures.add(owner, last, seq);
    insert.delivery.run(...deliveryRow(owner, event, last, attempts.length, seq, written + 1));
    attempts.forEach((attempt, i) => {
      writeAttempt(owner, event, attempt, seq, i + 1);
    });
    minuteOf(owner, event.at).accepted += 1;
    count(owner, event);
    written += 1;
    if (Math.floor(event.at / minuteMs) !== minuteNow) {
      minuteNow = Math.floor(event.at / minuteMs);
      writeMinutes(minuteNow - 1);
    }
    if (written % eventsInTransaction === 0) {
      client.run("commit");
      client.run("begin");
      showProgress(`seeding ${((written / history.events) * 100).toFixed(1)} % of ${history.events} events`);
    }
  }
  writeMinutes(Number.POSITIVE_INFINITY);
  failures.write();
  client.run("commit");
}

/** In the order of the columns, so that a changed schema does not pass unnoticed. */
function prepareInserts(client: Database): Record<"event" | "delivery" | "attempt" | "stat", Statement> {
  const into = (table: string, columns: string) =>
    client.prepare(`insert into ${table} (${columns}) values (${columns.replaceAll(/\w+/g, "?")})`);
  return {
    event: into("event", "seq, tenant_key, id_tail, payload"),
    delivery: into(
      "delivery",
      `key, tenant_key, event_seq, webhook_key, state, run, attempts_in_run, attempts, next_attempt_at, last_attempt_at,
       finished_at, error_reason, error_code, status_code, failure_key, last_duration_ms`,
    ),
    attempt: into(
      "attempt",
      "key, tenant_key, event_seq, webhook_key, number, started_at, duration_ms, status_code, error, error_code",
    ),
    stat: into("stat", "tenant_key, minute, accepted, delivered, failed, attempts, latency"),
  };
}

const reasonOf = ({ webhook }: Owner, { statusCode }: PastAttempt) =>
  statusCode === statusOfSuccess ? null : `HTTP ${statusCode} from ${webhook.url}`;

const stateOf = { delivered: stateDelivered, retried: stateDelivered, failed: stateFailed, pending: statePending };

function deliveryRow(
  owner: Owner,
  { at, fate }: PastEvent,
  last: PastAttempt | undefined,
  attempts: number,
  seq: number,
  key: number,
): (number | string | null)[] {
  const { webhook } = owner;
  const row = [key, owner.key, seq, webhook.key, stateOf[fate], 1, attempts, attempts];
  if (!last) return [...row, at, null, null, null, null, null, null, null];
  const reason = reasonOf(owner, last);
  const why = reason === null ? [null, null, null, null] : [reason, failedAs, last.statusCode, groupOf(owner, last)];
  return [...row, null, last.startedAt, last.endedAt, ...why, last.endedAt - last.startedAt];
}

const failedAs = "http_status";

const groupOf = ({ webhook }: Owner, { statusCode: status }: PastAttempt): number =>
  failureKeyOf({ webhookKey: webhook.key, code: failedAs, status, line: "" });

function count(owner: Owner, { at, fate }: PastEvent): void {
  const month = utcMonth(at);
  owner.eventsInMonth = month === owner.month ? owner.eventsInMonth + 1 : 1;
  owner.month = month;
  owner.events += 1;
  owner[fate === "retried" ? "delivered" : fate] += 1;
}

interface FailedSum {
  readonly owner: Owner;
  readonly status: number;
  readonly key: number;
  readonly hour: number;
  failed: number;
  lastFailedAt: number;
}

/** What has failed for good, in the groups that the store counts. */
function createFailures(client: Database) {
  const sums = new Map<string, FailedSum>();
  return {
    add(owner: Owner, attempt: PastAttempt, seq: number): void {
      const [key, hour] = [groupOf(owner, attempt), hourOf(seq)];
      const id = `${owner.key} ${key} ${hour}`;
      const sum = sums.get(id) ?? { owner, status: attempt.statusCode, key, hour, failed: 0, lastFailedAt: 0 };
      sum.failed += 1;
      sum.lastFailedAt = Math.max(sum.lastFailedAt, attempt.startedAt);
      sums.set(id, sum);
    },
    write(): void {
      const insertGroup = client.prepare(
        "insert or ignore into failure_group (tenant_key, key, webhook_key, code, status, line) values (?1, ?2, ?3, ?4, ?5, '')",
      );
      const insertCount = client.prepare(
        "insert into failure_count (tenant_key, failure_key, hour, waiting, failed, last_failed_at) values (?1, ?2, ?3, 0, ?4, ?5)",
      );
      for (const { owner, status, key, hour, failed, lastFailedAt } of sums.values()) {
        insertGroup.run(owner.key, key, owner.webhook.key, failedAs, status);
        insertCount.run(owner.key, key, hour, failed, lastFailedAt);
      }
    },
  };
}

function writeCounters(client: Database, history: History, owners: readonly Owner[]): void {
  const update = client.prepare(
    `update tenant_usage set month = ?2, events_in_month = ?3, events = ?4, pending = ?5, delivered = ?6, failed = ?7
     where tenant_key = ?1`,
  );
  client.run("begin");
  for (const { key, month, eventsInMonth, events, pending, delivered, failed } of owners) {
    if (events > 0) update.run(key, month, eventsInMonth, events, pending, delivered, failed);
  }
  client.run("update lane set last_event_seq = ?1 where id = 1", [history.seqOf(history.events - 1)]);
  client.run("commit");
}
