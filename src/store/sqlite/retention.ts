import { deliveryStates } from "../../domain/delivery.ts";
import { movesOf } from "../../domain/failure-groups.ts";
import { hasEnded } from "../../domain/retention.ts";
import { type Counters, forgetEvent, recordsIn } from "../../domain/tenant-state.ts";
import { type AccountKept, copiesOf, type InboxCopy, type RetentionVerbs } from "../retention.ts";
import { measureStorage, type Place, type RowSizes } from "../storage-size.ts";
import type { Connection } from "./connection.ts";
import { readOrRefuse, unlessDamaged } from "./damage.ts";
import type { FailureLedger } from "./failure-ledger.ts";
import type { HeldTenant } from "./held-tenants.ts";
import { createTenantRows } from "./tenant-rows.ts";
import type { WriteTransaction } from "./transaction.ts";
import { writeAroundDamage } from "./write-around-damage.ts";

/** Overhead in the tables and their indexes, as `dbstat` shows it when rows come in key order. */
const rowSizes: RowSizes = { event: 30, record: 140, attempt: 70, place: placeOf };

/** The most and the least of a row in a table leaf, and what an overflow page holds (file format, section 1.6). */
const [mostInLeaf, leastInLeaf, inOwnPage] = [4_061, 489, 4_092];

function placeOf(rowBytes: number): Place {
  if (rowBytes <= mostInLeaf) return { inPage: rowBytes, ownPages: 0 };
  const rest = leastInLeaf + ((rowBytes - leastInLeaf) % inOwnPage);
  const inPage = rest <= mostInLeaf ? rest : leastInLeaf;
  return { inPage, ownPages: Math.ceil((rowBytes - inPage) / inOwnPage) };
}

interface OldRecordRow {
  readonly state: number;
  readonly finishedAt: number | null;
  readonly failureKey: number | null;
}

export function retentionVerbs(
  { client, writer, reader, hold, filing, reportDamage }: Connection,
  failures: FailureLedger,
): RetentionVerbs {
  const recordsOf = client.prepare<OldRecordRow, [number, number]>(
    `select state, finished_at as finishedAt, failure_key as failureKey from delivery
     where tenant_key = ?1 and filed = 1 and event_seq = ?2`,
  );
  const deleteAttempts = client.prepare("delete from attempt where event_seq = ?1");
  const deleteRecords = client.prepare("delete from delivery where tenant_key = ?1 and filed = 1 and event_seq = ?2");
  const deleteEvent = client.prepare("delete from event where seq = ?1 and tenant_key = ?2");
  const erasePayload = client.prepare(
    "update event set payload = x'', checksum = null where seq = ?1 and tenant_key = ?2 and length(payload) > 0",
  );
  const copiesIn = client.prepare<InboxCopy, [number]>(
    "select key, event_id as eventId from inbox_delivery where tenant_key = ?1 and is_test = 0",
  );
  const deleteCopy = client.prepare("delete from inbox_delivery where key = ?1");
  const forgetAnswer = client.prepare(
    "update attempt set response_body = null, answer_head = null where key = ?1 and tenant_key = ?2",
  );
  const keptOtherwise = client.prepare<AccountKept, []>(
    `select key as tenantKey, own_retention_days as ownRetentionDays, own_payload_days as ownPayloadDays,
       own_storage_bytes as ownStorageBytes, storage_full_at as storageFullAt
     from tenant indexed by tenant_to_keep_otherwise
     where (own_retention_days is not null or own_payload_days is not null or own_storage_bytes is not null)
       and deleted_at is null`,
  );
  const countersOf = client.prepare<Pick<Counters, "pending" | "delivered" | "failed" | "skipped">, [number]>(
    "select pending, delivered, failed, skipped from tenant_usage where tenant_key = ?1",
  );
  const rows = createTenantRows(client);
  const pages = client.prepare<{ used: number }, []>(
    `select (page_count - freelist_count) * page_size as used
     from pragma_page_count, pragma_freelist_count, pragma_page_size`,
  );

  const endedRecords = (tenantKey: number, seq: number, endedBy: number) => {
    const records = recordsOf
      .all(tenantKey, seq)
      .map(({ state, ...record }) => ({ ...record, state: deliveryStates[state] ?? "PENDING" }));
    return hasEnded(records, endedBy) ? records : null;
  };

  function forgetCopies(tenantKey: number, seqs: readonly number[]): void {
    if (seqs.length === 0) return;
    // A damaged inbox must not keep the events themselves.
    const kept = unlessDamaged(() => copiesIn.all(tenantKey)) ?? [];
    for (const key of copiesOf(seqs, kept)) deleteCopy.run(key);
  }

  /** @returns whether the event was there and had ended */
  type Step = (tx: WriteTransaction, held: HeldTenant, seq: number) => boolean;

  async function ofEach(tenantKey: number, seqs: readonly number[], step: Step): Promise<number> {
    const done = await writeAroundDamage(
      writer,
      seqs,
      (tx, some) => {
        const held = hold(tx, tenantKey);
        filing.file(tx, tenantKey);
        const gone = held.gone ? [] : some.filter((seq) => step(tx, held, seq));
        forgetCopies(tenantKey, gone);
        return gone.length;
      },
      () => reportDamage(`Something old of the account with the key ${tenantKey}, which stays until it`),
    );
    return done.reduce((sum, one) => sum + one, 0);
  }

  return {
    oldEvents: (query) => reader.run("oldEvents", query),

    forgetEvents: (tenantKey, seqs, endedBy) =>
      ofEach(tenantKey, seqs, (tx, held, seq) => {
        const records = endedRecords(tenantKey, seq, endedBy);
        if (!records) return false;
        deleteAttempts.run(seq);
        deleteRecords.run(tenantKey, seq);
        if (deleteEvent.run(seq, tenantKey).changes === 0) return false;
        const moves = records.flatMap((record) => movesOf(record, null));
        failures.count(tx, { tenantKey, eventSeq: seq }, moves, null);
        held.counters = forgetEvent(held.counters, records);
        return true;
      }),

    erasePayloads: (tenantKey, seqs, endedBy) =>
      ofEach(tenantKey, seqs, (_tx, _held, seq) => {
        if (!endedRecords(tenantKey, seq, endedBy)) return false;
        if (erasePayload.run(seq, tenantKey).changes === 0) return false;
        rows.noteErased(tenantKey, seq);
        return true;
      }),

    keptAnswers: (query) => reader.run("keptAnswers", query),

    forgetAnswers: (tenantKey, attempts) =>
      writer.submit<void>((tx) => {
        if (hold(tx, tenantKey).gone) return;
        for (const { key } of attempts) forgetAnswer.run(key, tenantKey);
      }),

    accountsKeptOtherwise: () =>
      readOrRefuse(
        () => reportDamage("The list of accounts"),
        () => keptOtherwise.all(),
      ),

    async storageOf(tenantKey) {
      const counters = await readOrRefuse(
        () => reportDamage(`The usage of the account with the key ${tenantKey}`),
        () => countersOf.get(tenantKey),
      );
      if (!counters) return 0;
      await filing.whenFiled(tenantKey);
      return measureStorage(recordsIn(counters), rowSizes, (afterSeq, step) =>
        reader.run("measuredRecords", { tenantKey, afterSeq, step }),
      );
    },

    noteStorageFull: (tenantKey, since) =>
      writer.submit<void>((tx) => {
        const held = hold(tx, tenantKey);
        if (held.gone || (held.tenant.storageFullAt === null) === (since === null)) return;
        rows.change(tx, held, { storageFullAt: since });
      }),

    storedEvents: () => reader.run("storedEvents", undefined),

    usedBytes: async () => pages.get()?.used ?? 0,
  };
}
