import { and, eq } from "drizzle-orm";
import { accept, acceptOwn, type EarlierAnswer, firstDelivery, type NewRecord } from "../../domain/acceptance.ts";
import type { DueDelivery } from "../../domain/delivery.ts";
import { requestAbandoned } from "../../domain/errors.ts";
import { kindWithoutAnswer, movesOf, noWebhookKey } from "../../domain/failure-groups.ts";
import { join } from "../../domain/order.ts";
import type { Tenant } from "../../domain/tenant.ts";
import { countEvent, countOwnEvent, type RegisteredWebhook } from "../../domain/tenant-state.ts";
import type { WebhookRef } from "../../domain/webhook.ts";
import { encodeEventId, ingestedAtMs, randomTail } from "../../lib/id.ts";
import type { Growth } from "../growth.ts";
import { orderHashFor } from "../order-hash.ts";
import { type AcceptedEvents, type AcceptRequest, type EventVerbs, heavyEvents } from "../store.ts";
import { typeHashOf } from "../type-hash.ts";
import type { Connection } from "./connection.ts";
import { checksumOf } from "./damage.ts";
import type { FailureLedger } from "./failure-ledger.ts";
import { createApiKeyReader } from "./held-keys.ts";
import type { HeldTenant } from "./held-tenants.ts";
import { createLines } from "./lines.ts";
import * as t from "./schema.ts";
import { refuse, type WriteTransaction } from "./transaction.ts";
import { createWebhookUse } from "./webhook-use.ts";

type RoomFor = NonNullable<AcceptRequest["roomFor"]>;

const refOf = (tenant: Tenant, { key }: RegisteredWebhook): WebhookRef => ({ tenantKey: tenant.key, webhookKey: key });

const noRoomAtAll: RoomFor = () => 0;

/** A webhook that gets some of the accepted events. */
interface Taker {
  readonly webhook: RegisteredWebhook;
  /** How many records the caller can own. */
  readonly room: number;
  records: number;
}

/** Takes in events: whatever runs for each of them is prepared SQL (architecture, "SQL"). */
export function acceptanceVerbs(
  { client, db, writer, hold, rowKeys, ownership, filing }: Connection,
  failures: FailureLedger,
  { mayGrow }: Growth,
): Pick<EventVerbs, "acceptEvents" | "acceptOwnEvent"> {
  const insertEvent = client.prepare(
    `insert into event (seq, tenant_key, id_tail, payload, checksum, type, trace, ordering_key)
     values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)`,
  );
  const insertPending = client.prepare(
    `insert into delivery (key, tenant_key, event_seq, webhook_key, state, run, attempts_in_run, attempts, next_attempt_at,
       type_hash, order_hash, filed)
     values (?1, ?2, ?3, ?4, 0, 1, 0, 0, ?5, ?6, ?7, ?8)`,
  );
  const insertUndeliverable = client.prepare(
    `insert into delivery (key, tenant_key, event_seq, webhook_key, state, run, attempts_in_run, attempts, finished_at,
       error_reason, error_code, type_hash, failure_key, filed)
     values (?1, ?2, ?3, ?4, 2, 1, 0, 0, ?5, ?6, ?7, ?8, ?9, ?10)`,
  );

  const insertSkipped = client.prepare(
    `insert into delivery (key, tenant_key, event_seq, state, run, attempts_in_run, attempts, finished_at, type_hash, filed)
     values (?1, ?2, ?3, 3, 1, 0, 0, ?4, ?5, ?6)`,
  );

  const apiKeyOf = createApiKeyReader(client);
  const use = createWebhookUse(client);
  const lines = createLines(client);

  /** Writes events, each with its records. */
  function store(
    tx: WriteTransaction,
    held: HeldTenant,
    { events, trace = null, roomFor = noRoomAtAll }: Pick<AcceptRequest, "events" | "trace" | "roomFor">,
    recordsOfEach: readonly (readonly NewRecord[])[],
    isOwn = false,
  ): AcceptedEvents {
    const { tenant } = held;
    const filed = filing.defers(events.length) ? 0 : 1;
    const takers = new Map<number, Taker>();
    const takerOf = (webhook: RegisteredWebhook): Taker => {
      const known = takers.get(webhook.key);
      if (known) return known;
      const taker = { webhook, room: webhook.paused ? 0 : roomFor(refOf(tenant, webhook)), records: 0 };
      takers.set(webhook.key, taker);
      return taker;
    };
    const eventIds: string[] = [];
    const deliveries: DueDelivery[] = [];
    const failed: (number | null)[] = [];
    for (const [i, { payload, type, orderingKey = null }] of events.entries()) {
      const records = recordsOfEach[i] ?? [];
      const eventSeq = tx.nextEventSeq();
      const tail = randomTail();
      const eventId = encodeEventId(eventSeq, tail);
      eventIds.push(eventId);
      insertEvent.run(eventSeq, tenant.key, tail, payload, checksumOf(payload), type, trace, orderingKey);
      const typeHash = type === null ? null : typeHashOf(type);
      held.counters = isOwn
        ? countOwnEvent(held.counters, records)
        : countEvent(held.counters, ingestedAtMs(eventSeq), records);
      for (const record of records) {
        const deliveryKey = rowKeys.nextDelivery();
        if (filed === 0) filing.add(tenant.key, deliveryKey);
        if (record.state === "SKIPPED") {
          insertSkipped.run(deliveryKey, tenant.key, eventSeq, record.finishedAt, typeHash, filed);
          continue;
        }
        if (record.state === "FAILED") {
          const { webhook, finishedAt, failure } = record;
          const failureKey = webhook
            ? failures.keyOf(tx, tenant.key, kindWithoutAnswer(failure, webhook.key))
            : noWebhookKey;
          insertUndeliverable.run(
            deliveryKey,
            tenant.key,
            eventSeq,
            webhook?.key ?? null,
            finishedAt,
            failure.reason,
            failure.code,
            typeHash,
            failureKey,
            filed,
          );
          const moves = movesOf(null, { state: "FAILED", failureKey });
          failures.count(tx, { tenantKey: tenant.key, eventSeq }, moves, finishedAt);
          if (webhook) use.recordAdded(held, webhook);
          failed.push(webhook?.key ?? null);
          continue;
        }
        const { webhook, nextAttemptAt } = record;
        const { orderHash, isHeldBack } = join(orderHashFor(webhook, orderingKey), (hash) =>
          lines.hasHead(webhook.key, hash),
        );
        const dueAt = isHeldBack ? null : nextAttemptAt;
        insertPending.run(deliveryKey, tenant.key, eventSeq, webhook.key, dueAt, typeHash, orderHash, filed);
        // The head of its line is a record of the webhook too, so the webhook is already marked as used.
        if (isHeldBack) continue;
        const taker = takerOf(webhook);
        taker.records += 1;
        if (taker.records > taker.room) continue;
        deliveries.push(firstDelivery(tenant, webhook, { deliveryKey, eventSeq, eventId, payload, trace, orderHash }));
      }
    }
    if (filed === 1) filing.addFiled(tx);
    const unowned: WebhookRef[] = [];
    for (const { webhook, room, records } of takers.values()) {
      use.recordAdded(held, webhook);
      if (records > room && !webhook.paused) unowned.push(refOf(tenant, webhook));
    }
    return { eventIds, repeated: false, deliveries, unowned, failed };
  }

  function remembered(tenantKey: number, key: string): EarlierAnswer | null {
    const found = db
      .select()
      .from(t.idempotency)
      .where(and(eq(t.idempotency.tenantKey, tenantKey), eq(t.idempotency.key, key)))
      .get();
    return found ? { ...found, eventIds: found.eventIds.split(" ") } : null;
  }

  function remember(
    tenantKey: number,
    key: string,
    fingerprint: Uint8Array,
    eventIds: readonly string[],
    now: number,
  ): void {
    const row = { fingerprint: Buffer.from(fingerprint), eventIds: eventIds.join(" "), createdAt: now };
    db.insert(t.idempotency)
      .values({ tenantKey, key, ...row })
      .onConflictDoUpdate({ target: [t.idempotency.tenantKey, t.idempotency.key], set: row })
      .run();
  }

  return {
    acceptOwnEvent: ({ tenantKey, payload, ...event }) =>
      writer.submit<AcceptedEvents | null>((tx) => {
        const held = hold(tx, tenantKey);
        const records = acceptOwn(held, event, mayGrow(), tx);
        if (records.length === 0) return null;
        return store(tx, held, { events: [{ payload, type: event.type }] }, [records], true);
      }),

    acceptEvents(request) {
      const { tenantKey, apiKeyId, events, idempotency, isAbandoned } = request;
      return writer.submit<AcceptedEvents>(
        (tx) => {
          if (isAbandoned?.()) return refuse(requestAbandoned());
          const held = hold(tx, tenantKey);
          const submission = {
            types: events.map(({ type }) => type),
            apiKey: apiKeyOf(held, apiKeyId),
            fingerprint: idempotency?.fingerprint ?? null,
            earlier: idempotency ? remembered(tenantKey, idempotency.key) : null,
            mayGrow: mayGrow(),
          };
          const acceptance = accept(held, submission, tx);
          if (acceptance.kind === "refused") return refuse(acceptance.error);
          if (acceptance.kind === "repeated") {
            const { eventIds } = acceptance;
            return { eventIds, repeated: true, deliveries: [], unowned: [], failed: [] };
          }
          const accepted = store(tx, held, request, acceptance.records);
          // Owned from now on, even while the outcome of the commit is in doubt: a claim may already see the rows.
          ownership.take(accepted.deliveries);
          tx.ifUndone(() => ownership.end(accepted.deliveries));
          if (idempotency) {
            remember(tenantKey, idempotency.key, idempotency.fingerprint, accepted.eventIds, tx.now);
          }
          return accepted;
        },
        events.length >= heavyEvents ? "heavy" : "soon",
      );
    },
  };
}
