import { and, eq } from "drizzle-orm";
import { accept, type EarlierAnswer, firstDelivery, type NewRecord } from "../../domain/acceptance.ts";
import type { DueDelivery } from "../../domain/delivery.ts";
import { requestAbandoned } from "../../domain/errors.ts";
import { countEvent } from "../../domain/tenant-state.ts";
import { encodeEventId, ingestedAtMs, parseEventId, randomTail } from "../../lib/id.ts";
import type { Growth } from "../growth.ts";
import type { AcceptedEvents, EventVerbs } from "../store.ts";
import type { Connection } from "./connection.ts";
import { checksumOf } from "./damage.ts";
import type { HeldTenant } from "./held-tenants.ts";
import * as t from "./schema.ts";
import { createWebhookUse } from "./webhook-use.ts";
import { type Refusal, refuse, type WriteTransaction } from "./writer.ts";

/** From so many events on, accepting them is a heavy job of the writer: about 25 µs each. */
const heavyEvents = 50;

/** Events as they are taken in: what runs for each of them is prepared SQL (architecture, "SQL"). */
export function acceptanceVerbs(
  { client, db, writer, hold, rowKeys, ownership }: Connection,
  { mayGrow }: Growth,
): Pick<EventVerbs, "acceptEvents"> {
  const insertEvent = client.prepare(
    "insert into event (seq, tenant_key, id_tail, payload, checksum) values (?1, ?2, ?3, ?4, ?5)",
  );
  const insertPending = client.prepare(
    `insert into delivery (key, tenant_key, event_seq, webhook_key, state, run, attempts_in_run, attempts, next_attempt_at)
     values (?1, ?2, ?3, ?4, 0, 1, 0, 0, ?5)`,
  );
  const insertUndeliverable = client.prepare(
    `insert into delivery (key, tenant_key, event_seq, state, run, attempts_in_run, attempts, finished_at, error_reason, error_code)
     values (?1, ?2, ?3, 2, 1, 0, 0, ?4, ?5, ?6)`,
  );

  const use = createWebhookUse(client);

  /** Writes events, each with these records. */
  function store(
    tx: WriteTransaction,
    held: HeldTenant,
    payloads: readonly Uint8Array[],
    records: readonly NewRecord[],
  ): AcceptedEvents {
    const { tenant } = held;
    const eventIds: string[] = [];
    const deliveries: DueDelivery[] = [];
    let failed = 0;
    let firstSeq: number | null = null;
    for (const payload of payloads) {
      const eventSeq = tx.nextEventSeq();
      firstSeq ??= eventSeq;
      const tail = randomTail();
      const eventId = encodeEventId(eventSeq, tail);
      eventIds.push(eventId);
      insertEvent.run(eventSeq, tenant.key, tail, payload, checksumOf(payload));
      held.counters = countEvent(held.counters, ingestedAtMs(eventSeq), records);
      for (const record of records) {
        const deliveryKey = rowKeys.nextDelivery();
        if (record.state === "FAILED") {
          const { finishedAt, failure } = record;
          insertUndeliverable.run(deliveryKey, tenant.key, eventSeq, finishedAt, failure.reason, failure.code);
          failed += 1;
          continue;
        }
        insertPending.run(deliveryKey, tenant.key, eventSeq, record.webhook.key, record.nextAttemptAt);
        deliveries.push(firstDelivery(tenant, record.webhook, { deliveryKey, eventSeq, eventId, payload }));
      }
    }
    for (const { webhook } of records) if (webhook) use.recordAdded(held, webhook);
    return { eventIds, repeated: false, ingestedAt: ingestedAtMs(firstSeq ?? 0), deliveries, failed };
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
    async acceptEvents({ tenantKey, payloads, idempotency, isAbandoned }) {
      // From within the transaction on, also while its outcome is in doubt; the job may run once more, with other keys.
      let owned: readonly DueDelivery[] = [];
      const own = (deliveries: readonly DueDelivery[]) => {
        ownership.end(owned);
        ownership.take(deliveries);
        owned = deliveries;
      };
      const job = (tx: WriteTransaction): AcceptedEvents | Refusal => {
        if (isAbandoned?.()) return refuse(requestAbandoned());
        const held = hold(tx, tenantKey);
        const submission = {
          events: payloads.length,
          fingerprint: idempotency?.fingerprint ?? null,
          earlier: idempotency ? remembered(tenantKey, idempotency.key) : null,
          mayGrow: mayGrow(),
        };
        const acceptance = accept(held, submission, tx);
        if (acceptance.kind === "refused") return refuse(acceptance.error);
        if (acceptance.kind === "repeated") {
          const { eventIds } = acceptance;
          return { eventIds, repeated: true, ingestedAt: ingestedAtOf(eventIds), deliveries: [], failed: 0 };
        }
        const accepted = store(tx, held, payloads, acceptance.records);
        own(accepted.deliveries);
        if (idempotency) {
          remember(tenantKey, idempotency.key, idempotency.fingerprint, accepted.eventIds, tx.now);
        }
        return accepted;
      };
      try {
        return await writer.submit(job, payloads.length >= heavyEvents);
      } catch (error) {
        own([]);
        throw error;
      }
    },
  };
}

/** The ingestion time that the first of these ids carries. */
function ingestedAtOf([first = ""]: readonly string[]): number {
  const id = parseEventId(first);
  return id ? ingestedAtMs(id.seq) : 0;
}
