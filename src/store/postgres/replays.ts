import { createHash } from "node:crypto";
import { noRoom } from "../../domain/acceptance.ts";
import { replayCancelled } from "../../domain/audit.ts";
import { changed } from "../../domain/change.ts";
import { cutLabel, filterText, type Replay, type ReplayFilter, type ReplayRef } from "../../domain/replay.ts";
import {
  advance,
  cancel,
  previewOf,
  type ReplayPlace,
  startBulkReplay,
  startSingleReplay,
} from "../../domain/replay-phase.ts";
import { encodeEventId, parseEventId } from "../../lib/id.ts";
import type { Growth } from "../growth.ts";
import { cursorInSteps } from "../steps.ts";
import type { NewReplay, ReplayVerbs, Requeued } from "../store.ts";
import { noteAct } from "./audit.ts";
import { bounded, readBounded } from "./bounded-read.ts";
import type { Connection } from "./connection.ts";
import { type HeldTenant, hold, holdLiving } from "./held-tenants.ts";
import { labelText, wholeLabel } from "./labels.ts";
import { arrayText, hasZero } from "./parameters.ts";
import type { Pool, Transaction } from "./pool.ts";
import { completeReplays } from "./replay-counts.ts";
import {
  type ReplayRow,
  replayColumns,
  replayCounts,
  replayJoins,
  rowAt,
  toListedReplay,
  toReplay,
} from "./replay-rows.ts";
import { countErased, narrowingOf, nextEvents, select, takes } from "./replay-selection.ts";
import { type RequeuedEvents, requeueEvents } from "./requeued-events.ts";
import type { WriteTransaction } from "./writes.ts";

/**
 * The oldest unfinished bulk replay of each tenant is the one whose turn it is, even while its last runs are ending: the next
 * one would overtake them. Among those with something to queue, the one served least so far.
 */
export const nextTurnText = `select r.tenant_key::float8 as "tenantKey", r.key::float8 as "replayKey", r."tenantId" from (
    select distinct on (replay.tenant_key) replay.*, tenant.id as "tenantId"
    from replay join tenant on tenant.key = replay.tenant_key
    where phase in ('waiting', 'queueing', 'queued') and kind <> 'single' and tenant.operator_suspended_at is null
    order by replay.tenant_key, replay.key) r
  where r.phase in ('waiting', 'queueing') order by r.queued + r.skipped, r.key limit 1`;

/** Replays that are queued and whose runs have all ended, but that nobody completed: whoever ended the last run died first. */
export const leftText = `select tenant_key::float8 as "tenantKey", key::float8 as "replayKey" from replay ${replayCounts}
  where phase = 'queued'
    and replay.delivered + replay.failed + replay.superseded + c.delivered + c.failed + c.superseded >= queued`;

const unendedColumns = `select key::float8 as key, id, kind, phase, cursor_seq::float8 as "cursorSeq" from replay`;

const unfinishedText = `select tenant_key::float8 as "tenantKey", key::float8 as "replayKey" from replay
  where phase in ('waiting', 'queueing', 'queued')
    and exists (select 1 from tenant where tenant.key = replay.tenant_key and deleted_at is null)
  order by tenant_key, key limit $1::int`;

/** How often to look for them; that reads every replay that is queued and has not ended. */
const lookForLeftEveryMs = 60_000;

const listedText = bounded(`
  select n::int as n, octet_length(${wholeLabel}) as size, ${replayColumns}
  from unnest($3::bigint[]) with ordinality as place (place_key, n)
  join replay on replay.tenant_key = $2::bigint and replay.key = place_key ${replayJoins}`);

/** For a filter that nothing can meet. */
const noRecords = { webhookKeys: [], failure: null };

type Batch = Requeued & { tenantId: string; tenantKey: number };

/** Replays as they are created, listed and queued; their phases are in `domain/replay-phase.ts`. */
export function replayVerbs(connection: Connection, { mayGrow }: Growth): Omit<ReplayVerbs, "returnCancelled"> {
  const { pool, slowReads, writes, clock } = connection;
  let lookedForLeftAt = Number.NEGATIVE_INFINITY;

  /**
   * What follows once a transaction that queued is committed: only then is it visible to everybody who ends a run. The next
   * look for left-over replays makes up for anything that fails here.
   */
  async function queued(ref: ReplayRef, replay: Replay, { seqs, webhookKeys, overtaken, superseded }: RequeuedEvents) {
    const { tenantKey } = ref;
    const ended = [...superseded].map((replayKey) => ({ tenantKey, replayKey }));
    const after = await completeReplays(pool, [ref, ...ended], clock.now())
      .then(() => find(pool, ref))
      .catch(() => null);
    const webhooks = [...webhookKeys].map((webhookKey) => ({ tenantKey, webhookKey }));
    // These are only for announcement; the replay goes on without them.
    const eventIds = await idsOf(pool, tenantKey, seqs).catch(() => []);
    return { replay: after ?? replay, webhooks, overtaken, eventIds };
  }

  async function completeLeft(now: number): Promise<void> {
    if (now - lookedForLeftAt < lookForLeftEveryMs) return;
    await completeReplays(pool, await pool.read<ReplayRef>(leftText), now);
    lookedForLeftAt = now;
  }

  /** @returns "passed" when it was another one's turn by then */
  const queueBatch = ({ tenantId, ...ref }: ReplayRef & { tenantId: string }, limit: number) =>
    writes.submit(async (tx): Promise<(() => Promise<Batch>) | "passed"> => {
      const { tenantKey, replayKey } = ref;
      // Anyone who queues for the tenant at the same moment comes before or after.
      const held = await hold(tx, tenantKey);
      const [row] = await tx.run<Pick<ReplayRow, "phase" | "cursorSeq" | "toSeq" | "kind" | "createdAt" | "filter">>(
        `select phase, cursor_seq::float8 as "cursorSeq", to_seq::float8 as "toSeq", kind, created_at::float8 as "createdAt", filter
          from replay where tenant_key = $1::bigint and key = $2::bigint and phase in ('waiting', 'queueing') for update`,
        [tenantKey, replayKey],
      );
      if (!row) return "passed";
      if (held.gone) {
        const replay = await move(tx, ref, cancel(row, tx.now), nothing);
        return async () => ({ replay, webhooks: [], overtaken: [], eventIds: [], tenantId, tenantKey });
      }
      if (held.tenant.operatorSuspendedAt !== null) return "passed";
      if (!mayGrow()) throw noRoom();
      const { seqs, narrowing } = await nextEvents(tx, tenantKey, row, limit);
      const replaying = { key: replayKey, kind: row.kind, ...(narrowing ?? noRecords) };
      const done = await requeueEvents(connection, tx, held, seqs, replaying);
      const replay = await move(tx, ref, advance(seqs, limit, row.toSeq), done);
      return async () => ({ ...(await queued(ref, replay, done)), tenantId, tenantKey });
    });

  return {
    async replayEvent(tenantKey, replay, now, act) {
      const { ref, after, done } = await writes.submit(async (tx) => {
        const held = await hold(tx, tenantKey);
        const seq = held.gone ? null : await findOwnEvent(tx.run, tenantKey, replay.eventId ?? "");
        const event = seq === null ? null : { seq, ...(await replayed(tx, tenantKey, seq, replay.filter)) };
        const start = startSingleReplay(held, event, mayGrow());
        if (start.kind === "refused") throw start.error;
        const { eventSeq } = start;
        const range = { fromSeq: eventSeq, toSeq: eventSeq, cursorSeq: eventSeq };
        const made = await insert(tx, tenantKey, replay, { ...range, phase: "queued", selected: 1, createdAt: now });
        const narrowing = (await narrowingOf(tx, tenantKey, replay.filter)) ?? noRecords;
        const replaying = { key: made.replayKey, kind: "single", ...narrowing } as const;
        const requeued = await requeueEvents(connection, tx, held, [eventSeq], replaying);
        if (act) await noteAct(tx, held.tenant.id, act);
        const place: ReplayPlace = { phase: "queued", cursorSeq: eventSeq, completedAt: null };
        return { ref: made, after: await move(tx, made, place, requeued), done: requeued };
      });
      return queued(ref, after, done);
    },

    async startReplay(tenantKey, replay, now, limits, act) {
      const {
        n: selected,
        lastFailedAt,
        ...range
      } = await slowReads.run(tenantKey, () => select({ run: pool.read }, tenantKey, replay));
      return writes.submit(async (tx) => {
        const held = await hold(tx, tenantKey);
        const bulk = {
          unfinished: await countUnfinished(tx, tenantKey),
          nthLastBegunAt: limits.perDay === null ? null : await nthLastBegunAt(tx, tenantKey, limits.perDay),
        };
        const start = startBulkReplay(held, bulk, limits, mayGrow(), {
          now,
          orderedNow: Math.max(tx.orderedNow, lastFailedAt ?? 0),
        });
        if (start.kind === "refused") throw start.error;
        const cursorSeq = Math.max(0, range.fromSeq - 1);
        const { createdAt } = start;
        const ref = await insert(tx, tenantKey, replay, { ...range, cursorSeq, phase: "waiting", selected, createdAt });
        if (act) await noteAct(tx, held.tenant.id, act);
        return toReplay(await rowAt(tx, ref));
      });
    },

    async previewReplay(tenantKey, replay) {
      const reads = { run: pool.read };
      if (replay.kind !== "single") {
        return slowReads.run(tenantKey, async () => ({
          selected: (await select(reads, tenantKey, replay)).n,
          payloadsErased: await countErased(reads, tenantKey, replay),
        }));
      }
      const seq = await findOwnEvent(pool.read, tenantKey, replay.eventId ?? "");
      return previewOf(seq === null ? null : await replayed(reads, tenantKey, seq, replay.filter));
    },

    async queueReplayBatch(limit, now) {
      await completeLeft(now);
      for (;;) {
        const [turn] = await pool.read<ReplayRef & { tenantId: string }>(nextTurnText);
        if (!turn) return null;
        const batch = await queueBatch(turn, limit);
        if (batch !== "passed") return batch();
      }
    },

    async replays(tenantKey, { offset, limit }) {
      const [counted] = await pool.read<{ n: number }>(
        "select count(*)::int as n from replay where tenant_key = $1::bigint",
        [tenantKey],
      );
      const listed = await pool.read<{ key: number }>(
        `select key::float8 as key from replay where tenant_key = $1::bigint order by key desc limit $2::int offset $3::bigint`,
        [tenantKey, limit, offset],
      );
      const list = cursorInSteps(
        listed.map(({ key }) => key),
        (step) => readBounded<ReplayRow>(pool, listedText, step, [tenantKey, arrayText(step.keys)]),
        toListedReplay,
      );
      return { replays: list, total: counted?.n ?? 0 };
    },

    async findReplay(tenantKey, replayId) {
      const [row] = await pool.read<ReplayRow>(
        `select ${replayColumns} from replay ${replayJoins} where replay.tenant_key = $1::bigint and replay.id = $2`,
        [tenantKey, replayId],
      );
      return row ? toReplay(row) : null;
    },

    replayByKey: (ref) => find(pool, ref),

    async cancelReplay(tenantKey, replayId, now, act) {
      if (hasZero([replayId])) return null;
      return writes.submit(async (tx) => {
        const held = await holdLiving(tx, tenantKey);
        // Locked, so that nobody completes it meanwhile.
        const [row] = await tx.run<UnendedRow>(
          `${unendedColumns} where tenant_key = $1::bigint and id = $2 for update`,
          [tenantKey, replayId],
        );
        if (!row) return null;
        const { isCancelled, replay } = await cancelOne(tx, held, row, now);
        if (act && isCancelled) await noteAct(tx, held.tenant.id, act);
        return replay;
      });
    },

    async cancelReplays(limit, now, by) {
      const found = await pool.read<ReplayRef>(unfinishedText, [limit]);
      for (const { tenantKey, replayKey } of found) {
        await writes.submit(async (tx) => {
          const held = await hold(tx, tenantKey);
          const [row] = await tx.run<UnendedRow>(
            `${unendedColumns} where tenant_key = $1::bigint and key = $2::bigint for update`,
            [tenantKey, replayKey],
          );
          if (!row || held.gone) return;
          const { isCancelled } = await cancelOne(tx, held, row, now);
          if (isCancelled && row.kind !== "single") await noteAct(tx, held.tenant.id, replayCancelled(by, row.id));
        });
      }
      return found.length;
    },
  };
}

type UnendedRow = Pick<ReplayRow, "key" | "id" | "kind" | "phase" | "cursorSeq">;

/** Takes a locked row. */
async function cancelOne(
  tx: WriteTransaction,
  { tenant }: HeldTenant,
  row: UnendedRow,
  now: number,
): Promise<{ isCancelled: boolean; replay: Replay }> {
  const ref = { tenantKey: tenant.key, replayKey: row.key };
  const cancellation = cancel(row, now);
  if (cancellation?.hasRuns) {
    await tx.run("update replay set is_returning = true where tenant_key = $1::bigint and key = $2::bigint", [
      ref.tenantKey,
      row.key,
    ]);
    tx.changed({ ...changed(tenant), kind: "replay_cancelled", replayKey: row.key });
  }
  return { isCancelled: cancellation !== null, replay: await move(tx, ref, cancellation, nothing) };
}

async function idsOf({ read }: Pool, tenantKey: number, seqs: readonly number[]): Promise<string[]> {
  if (seqs.length === 0) return [];
  const rows = await read<{ seq: number; idTail: Uint8Array }>(
    `select seq::float8 as seq, id_tail as "idTail" from event
      where tenant_key = $1::bigint and seq = any($2::bigint[]) and seq between $3::bigint and $4::bigint order by seq`,
    [tenantKey, arrayText(seqs), Math.min(...seqs), Math.max(...seqs)],
  );
  return rows.map(({ seq, idTail }) => encodeEventId(seq, idTail));
}

async function replayed(reads: Pick<Transaction, "run">, tenantKey: number, seq: number, filter?: ReplayFilter) {
  const [event] = await reads.run<{ payloadErased: boolean }>(
    `select octet_length(payload) = 0 as "payloadErased" from event where seq = $2::bigint and tenant_key = $1::bigint`,
    [tenantKey, seq],
  );
  const isSelected = await takes(reads, tenantKey, seq, filter);
  return { isSelected, payloadErased: event?.payloadErased === true };
}

/** Null: there is no such replay. */
async function find({ read }: Pool, ref: ReplayRef): Promise<Replay | null> {
  const row = await rowAt({ run: read }, ref);
  return row ? toReplay(row) : null;
}

type Place = Pick<ReplayRow, "phase" | "fromSeq" | "toSeq" | "cursorSeq" | "selected" | "createdAt">;

async function insert(tx: Transaction, tenantKey: number, replay: NewReplay, place: Place): Promise<ReplayRef> {
  const [shown, labelKey] = await keepLabel(tx, tenantKey, replay.label);
  const [row] = await tx.run<{ key: number }>(
    `insert into replay (id, tenant_key, kind, label, label_key, phase, from_seq, to_seq, cursor_seq, selected, created_at,
       filter)
     values ($1, $2::bigint, $3, $4, $5::bigint, $6, $7::bigint, $8::bigint, $9::bigint, $10::bigint, $11::bigint, $12)
     returning key::float8 as key`,
    [
      replay.id,
      tenantKey,
      replay.kind,
      shown,
      labelKey,
      place.phase,
      place.fromSeq,
      place.toSeq,
      place.cursorSeq,
      place.selected,
      place.createdAt,
      filterText(replay.filter),
    ],
  );
  if (!row) throw new Error("A replay that was inserted was not returned");
  return { tenantKey, replayKey: row.key };
}

/** What of a label goes into the replay's own row: the label as attempts show it, and where the whole of a long label is. */
async function keepLabel({ run }: Transaction, tenantKey: number, label: string): Promise<[string, number | null]> {
  const shown = cutLabel(label);
  if (shown === label) return [labelText(label), null];
  const hash = createHash("sha256").update(label).digest();
  await run(
    "insert into replay_label (tenant_key, hash, text) values ($1::bigint, $2::bytea, $3) on conflict do nothing",
    [tenantKey, hash, labelText(label)],
  );
  const [kept] = await run<{ key: number }>(
    "select key::float8 as key from replay_label where tenant_key = $1::bigint and hash = $2::bytea",
    [tenantKey, hash],
  );
  return [labelText(shown), kept?.key ?? null];
}

const nothing = { queued: 0, skipped: 0, payloadsErased: 0 };

/** @param place null: it does not move */
async function move(
  tx: Transaction,
  ref: ReplayRef,
  place: ReplayPlace | null,
  { queued, skipped, payloadsErased }: Pick<RequeuedEvents, "queued" | "skipped" | "payloadsErased">,
): Promise<Replay> {
  if (place) {
    await tx.run(
      `update replay set phase = $3, cursor_seq = $4::bigint, queued = queued + $5::bigint, skipped = skipped + $6::bigint,
         payloads_erased = payloads_erased + $7::bigint, completed_at = $8::bigint
       where tenant_key = $1::bigint and key = $2::bigint`,
      [
        ...[ref.tenantKey, ref.replayKey, place.phase, place.cursorSeq],
        ...[queued, skipped, payloadsErased, place.completedAt],
      ],
    );
  }
  return toReplay(await rowAt(tx, ref));
}

async function findOwnEvent(run: Transaction["run"], tenantKey: number, eventId: string): Promise<number | null> {
  const id = parseEventId(eventId);
  if (!id) return null;
  const [found] = await run<{ idTail: Uint8Array }>(
    `select id_tail as "idTail" from event where seq = $1::bigint and tenant_key = $2::bigint`,
    [id.seq, tenantKey],
  );
  return found && encodeEventId(id.seq, found.idTail) === eventId ? id.seq : null;
}

async function countUnfinished({ run }: Transaction, tenantKey: number): Promise<number> {
  const [row] = await run<{ n: number }>(
    `select count(*)::int as n from replay
      where tenant_key = $1::bigint and phase in ('waiting', 'queueing', 'queued') and kind <> 'single'`,
    [tenantKey],
  );
  return row?.n ?? 0;
}

async function nthLastBegunAt({ run }: Transaction, tenantKey: number, n: number): Promise<number | null> {
  const [row] = await run<{ createdAt: number }>(
    `select created_at::float8 as "createdAt" from replay
      where tenant_key = $1::bigint and kind in ('timeline', 'all', 'failed') order by created_at desc limit 1 offset $2::int`,
    [tenantKey, n - 1],
  );
  return row?.createdAt ?? null;
}
