import type { Database } from "bun:sqlite";
import { encodeEventId } from "../../../../src/lib/id.ts";
import type { HistoryEnd } from "./history.ts";
import { orderingKeyOf, type Submission } from "./ledger.ts";

interface Stored {
  eventId: string;
  tenantKey: number;
  payload: string;
  orderingKey: string | null;
}

const tenantTables = [
  "tenant_usage",
  "api_key",
  "signing_key",
  "signing_secret",
  "webhook",
  "event",
  "delivery",
  "attempt",
  "replay",
  "idempotency",
  "stat",
  "webhook_stat",
  "refused_events",
] as const;

/** What must hold when a history is over. */
export function checkEnd(end: HistoryEnd): void {
  const { client, ledger, network, findings, held, wasCalm } = end;
  const { expect, broken } = findings;

  const stored = readEvents(client);
  const byPayload = Map.groupBy(stored, ({ payload }) => payload);
  for (const submission of ledger.submissions) {
    if (ledger.deletedAccounts.has(submission.tenantKey)) continue;
    checkSubmission(
      end,
      submission,
      submission.payloads.map((payload) => byPayload.get(payload) ?? []),
    );
  }
  const submitted = new Map(
    ledger.submissions.flatMap(({ tenantKey, payloads }) => payloads.map((p) => [p, tenantKey])),
  );
  for (const { eventId, tenantKey, payload, orderingKey } of stored) {
    expect(submitted.get(payload) === tenantKey, "stored", () => `${eventId} of account ${tenantKey}: ${payload}`);
    expect(orderingKey === orderingKeyOf(payload), "stored", () => `${eventId} has the ordering key ${orderingKey}`);
  }

  for (const { key, isDeleted } of ledger.accounts) {
    if (isDeleted) {
      for (const table of tenantTables) {
        const left = count(client, `select count(*) as n from ${table} where tenant_key = ?1`, key);
        expect(left === 0, "rest", () => `${left} rows of ${table} of the deleted account ${key}`);
      }
      expect(
        count(client, "select count(*) as n from tenant where key = ?1", key) === 0,
        "rest",
        () => `account ${key}`,
      );
      continue;
    }
    const usage = client
      .query<Record<string, number>, [number]>(
        "select events, pending, delivered, failed from tenant_usage where tenant_key = ?1",
      )
      .get(key);
    const own = {
      events: count(client, "select count(*) as n from event where tenant_key = ?1", key),
      pending: count(client, "select count(*) as n from delivery where state = 0 and tenant_key = ?1", key),
      delivered: count(client, "select count(*) as n from delivery where state = 1 and tenant_key = ?1", key),
      failed: count(client, "select count(*) as n from delivery where state = 2 and tenant_key = ?1", key),
    };
    expect(Bun.deepEquals(usage, own), "counters", () => `${JSON.stringify(usage)} for ${JSON.stringify(own)}`);
    expect(own.pending === 0, "rest", () => `${own.pending} deliveries of account ${key} are pending`);
    if (!wasCalm) continue;
    const charts = client
      .query<Record<string, number>, [number]>(
        `select coalesce(sum(accepted), 0) as accepted, coalesce(sum(attempts), 0) as attempts,
          (select coalesce(sum(attempts), 0) from webhook_stat where tenant_key = ?1) as ofWebhooks from stat where tenant_key = ?1`,
      )
      .get(key);
    const attempts = count(client, "select count(*) as n from attempt where tenant_key = ?1", key);
    const happened = { accepted: own.events, attempts, ofWebhooks: attempts };
    expect(
      Bun.deepEquals(charts, happened),
      "charts",
      () => `${JSON.stringify(charts)} for ${JSON.stringify(happened)}`,
    );
  }

  expect(held === 0, "rest", () => `${held} deliveries are held in memory`);
  const inFlight = network.all.filter(({ fate }) => fate === "under way").length;
  expect(inFlight === 0, "rest", () => `${inFlight} attempts are under way`);

  const acknowledged = new Set<string>();
  for (const { delivery, fate, status, isRecorded, isForgotten } of network.all) {
    if (ledger.deletedAccounts.has(delivery.tenantKey)) continue;
    const what = `${delivery.eventId} to ${delivery.url}, run ${delivery.run}`;
    // Whatever the disk does, a program that goes on knows how its attempts ended.
    expect(isRecorded || isForgotten, "log", () => `${what} was ${fate}, and is not recorded`);
    if (isForgotten || status === null || status < 200 || status > 299) continue;
    const run = `${delivery.deliveryKey} ${delivery.run}`;
    expect(!acknowledged.has(run), "once", () => `${what} was acknowledged twice`);
    acknowledged.add(run);
  }

  const ids = new Set(
    client
      .query<{ id: string }, []>("select id from replay")
      .all()
      .map(({ id }) => id),
  );
  for (const { tenantKey, id } of ledger.replayIds) {
    if (!ledger.deletedAccounts.has(tenantKey))
      expect(ids.has(id), "replays", () => `${id} was answered and is not there`);
  }
  const integrity = client.query<{ integrity_check: string }, []>("pragma integrity_check").all();
  expect(integrity[0]?.integrity_check === "ok", "sound", () => JSON.stringify(integrity));
  const orphans = client.query("pragma foreign_key_check").all();
  if (orphans.length > 0) broken("sound", `rows without parents: ${JSON.stringify(orphans)}`);
}

function checkSubmission({ findings }: HistoryEnd, submission: Submission, found: readonly Stored[][]): void {
  const { expect } = findings;
  const { tries, idempotencyKey, payloads } = submission;
  const what = `${payloads.length} events from ${payloads[0]}`;
  const times = new Set(found.map(({ length }) => length));
  expect(times.size === 1, "stored", () => `of ${what}, some are there ${[...times]} times`);
  const [stored = 0] = times;
  const accepted = tries.filter(({ fate }) => fate === "accepted");
  const isUnknown = tries.some(({ fate }) => fate === "lost" || fate === "under way");
  const most = isUnknown || accepted.length > 0 ? 1 : 0;
  const least = accepted.length > 0 ? 1 : 0;
  expect(stored >= least && stored <= most, "accepted", () => {
    return `${what} are there ${stored} times after ${tries.map(({ fate }) => fate)}`;
  });
  const first = accepted[0]?.eventIds.join() ?? "";
  for (const { eventIds } of accepted) {
    const invariant = idempotencyKey === null ? "accepted" : "repeated";
    const ids = found.map(([event]) => event?.eventId).join();
    expect(
      eventIds.join() === first && first === ids,
      invariant,
      () => `${what}: ${eventIds}, first ${first}, stored ${ids}`,
    );
  }
}

function readEvents(client: Database): Stored[] {
  return client
    .query<Omit<Stored, "eventId" | "payload"> & { seq: number; idTail: Uint8Array; payload: Uint8Array }, []>(
      `select seq, id_tail as idTail, tenant_key as tenantKey, payload, ordering_key as orderingKey from event
       order by seq`,
    )
    .all()
    .map(({ seq, idTail, payload, ...event }) => {
      return { ...event, eventId: encodeEventId(seq, idTail), payload: Buffer.from(payload).toString() };
    });
}

const count = (client: Database, sql: string, key: number) =>
  client.query<{ n: number }, [number]>(sql).get(key)?.n ?? 0;
