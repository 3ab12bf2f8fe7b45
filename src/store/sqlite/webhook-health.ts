import { and, asc, desc, eq, sql } from "drizzle-orm";
import type { BunSQLiteDatabase } from "drizzle-orm/bun-sqlite";
import type { DeliveryState } from "../../domain/delivery.ts";
import { type Health, type LastAttempt, summarizeHealth } from "../webhook-health.ts";
import { listedOf } from "./listed.ts";
import * as t from "./schema.ts";

export interface HealthQuery {
  tenantKey: number;
  webhookKeys: readonly number[];
  /** Most records per webhook. */
  records: number;
  /** How many of the tenant's records to look for them in. */
  walked: number;
}

/**
 * How the latest deliveries to each of these webhooks of a tenant went. If the walk were unlimited, a new webhook next to one
 * with millions of records would make it cover them all; limited to 5,000 it takes 2 ms at ten million.
 */
export function webhookHealth(
  db: BunSQLiteDatabase,
  { tenantKey, webhookKeys, records, walked }: HealthQuery,
): Map<number, Health> {
  const latest = new Map(webhookKeys.map((webhookKey) => [webhookKey, [] as number[]]));
  const candidates = db
    .select({ key: t.delivery.key, webhookKey: t.delivery.webhookKey })
    .from(t.delivery)
    .where(listedOf(tenantKey))
    .orderBy(desc(t.delivery.eventSeq), asc(t.delivery.key))
    .limit(walked)
    .all();
  for (const { key, webhookKey } of candidates) {
    const keys = latest.get(webhookKey ?? 0);
    if (keys && keys.length < records) keys.push(key);
  }
  return new Map([...latest].map(([webhookKey, keys]) => [webhookKey, healthOf(db, webhookKey, keys)]));
}

function healthOf(db: BunSQLiteDatabase, webhookKey: number, keys: readonly number[]): Health {
  const { state, lastAttemptAt, errorReason, errorCode, eventSeq, typeHash } = t.delivery;
  const records = db
    .select({ state, lastAttemptAt, errorReason, errorCode, eventSeq, typeHash })
    .from(t.delivery)
    .where(sql`${t.delivery.key} in (select value from json_each(${JSON.stringify(keys)}))`)
    .all();
  const { health, last } = summarizeHealth(records.map((row) => ({ ...row, state: states[row.state] ?? "FAILED" })));
  return { ...health, lastStatusCode: last ? statusOf(db, webhookKey, last) : null };
}

const states: Readonly<Record<number, DeliveryState>> = {
  [t.statePending]: "PENDING",
  [t.stateDelivered]: "DELIVERED",
};

/** The status of the attempt that a record shows as its last one. */
function statusOf(db: BunSQLiteDatabase, webhookKey: number, { eventSeq, at }: LastAttempt): number | null {
  const ofRecord = and(
    eq(t.attempt.eventSeq, eventSeq),
    eq(t.attempt.webhookKey, webhookKey),
    eq(t.attempt.startedAt, at),
  );
  const attempt = db
    .select({ statusCode: t.attempt.statusCode })
    .from(t.attempt)
    .where(ofRecord)
    .orderBy(desc(t.attempt.key))
    .limit(1)
    .get();
  return attempt?.statusCode ?? null;
}
