import { noRoom } from "../../domain/acceptance.ts";
import { filterText, type Replay, type ReplayFilter } from "../../domain/replay.ts";
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
import type { ReplayVerbs, Requeued } from "../store.ts";
import { isStorageDamaged } from "../unless-damaged.ts";
import type { CancelledRuns } from "./cancelled-runs.ts";
import type { Connection } from "./connection.ts";
import { damagedEvent, readOrRefuse, unlessDamaged } from "./damage.ts";
import type { FailureLedger } from "./failure-ledger.ts";
import { createReplayLabels } from "./replay-labels.ts";
import type { ReplayLedger } from "./replay-ledger.ts";
import {
  replayColumns as columns,
  type Done,
  noneDone,
  plus,
  type ReplayRow,
  toListedReplay,
  toReplay,
} from "./replay-rows.ts";
import { createReplaySelection } from "./replay-selection.ts";
import { createQueued, createRequeuedEvents, type Queued } from "./requeued-events.ts";
import { cursorOver } from "./step-cursor.ts";
import { refuse } from "./transaction.ts";

/** How many events to queue; events of the replay `passOver` are not queued but all counted as skipped. */
interface ReplayStep {
  readonly limit: number;
  readonly passOver: number | null;
}

/** For a filter that no record can match. */
const nothing = { webhookKeys: [], failure: null };

/** Creates, lists and queues replays; their phases are in `domain/replay-phase.ts`. */
export function replayVerbs(
  connection: Connection,
  ledger: ReplayLedger,
  failures: FailureLedger,
  { mayGrow }: Growth,
): Omit<ReplayVerbs, keyof CancelledRuns> {
  const { client, writer, hold, filing, reportDamage, audit } = connection;

  const insert = client.prepare(
    `insert into replay (id, tenant_key, kind, label, label_key, phase, from_seq, to_seq, cursor_seq, selected, created_at, filter)
     values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)`,
  );
  const keepLabel = createReplayLabels(client);
  const byKey = client.prepare<ReplayRow, [number]>(`select ${columns} from replay where key = ?1`);
  const byId = client.prepare<ReplayRow, [string, number]>(
    `select ${columns} from replay where id = ?1 and tenant_key = ?2`,
  );
  const listed = client.prepare<{ key: number }, [number, number, number]>(
    "select key from replay where tenant_key = ?1 order by key desc limit ?2 offset ?3",
  );
  const counted = client.prepare<{ n: number }, [number]>("select count(*) as n from replay where tenant_key = ?1");
  const unfinished = client.prepare<{ n: number }, [number]>(
    "select count(*) as n from replay where tenant_key = ?1 and phase in ('waiting', 'queueing', 'queued') and kind <> 'single'",
  );
  const bulkBegun = client.prepare<{ createdAt: number }, [number, number]>(
    `select created_at as createdAt from replay where tenant_key = ?1 and kind in ('timeline', 'all', 'failed')
     order by created_at desc limit 1 offset ?2`,
  );
  // A tenant's oldest unfinished bulk replay has its turn, even while its last runs are still ending: the next one would
  // supersede them. Among those with something to queue, the one served least so far comes first.
  const nextTurn = client.prepare<ReplayRow & { tenantId: string }, []>(
    `select ${columns}, (select tenant.id from tenant where tenant.key = replay.tenant_key) as tenantId from replay
     where phase in ('waiting', 'queueing') and key in (
       select min(replay.key) from replay join tenant on tenant.key = replay.tenant_key
       where phase in ('waiting', 'queueing', 'queued') and kind <> 'single' and tenant.operator_suspended_at is null
       group by tenant_key)
     order by queued + skipped, key limit 1`,
  );
  // The first condition is that of an index; the second alone would not use it.
  const left = client.prepare<{ key: number }, []>(
    `select key from replay where phase in ('waiting', 'queueing', 'queued') and phase = 'queued'
       and delivered + failed + superseded >= queued`,
  );
  const eventAt = client.prepare<{ tenantKey: number; idTail: Uint8Array }, [number]>(
    "select tenant_key as tenantKey, id_tail as idTail from event where seq = ?1",
  );
  const selection = createReplaySelection(connection);
  const { requeueEvent, contentOf } = createRequeuedEvents(connection, ledger, failures);
  const setPlace = client.prepare(
    `update replay set phase = ?2, cursor_seq = ?3, queued = queued + ?4, skipped = skipped + ?5,
       payloads_erased = payloads_erased + ?6, completed_at = ?7
     where key = ?1`,
  );

  /** Null: the replay stays where it is. */
  function move(replayKey: number, place: ReplayPlace | null, { queued, skipped, payloadsErased }: Done): void {
    if (!place) return;
    setPlace.run(replayKey, place.phase, place.cursorSeq, queued, skipped, payloadsErased, place.completedAt);
  }

  /** Empty when the event is damaged: that stops a delivery, but not a replay. */
  function idAt(seq: number): string[] {
    try {
      const found = eventAt.get(seq);
      return found ? [encodeEventId(seq, found.idTail)] : [];
    } catch (error) {
      if (isStorageDamaged(error)) return [];
      throw error;
    }
  }

  const toRefs = (tenantKey: number, { webhookKeys, overtaken, seqs }: Queued): Omit<Requeued, "replay"> => ({
    webhooks: [...webhookKeys].map((webhookKey) => ({ tenantKey, webhookKey })),
    overtaken,
    eventIds: seqs.flatMap(idAt),
  });

  function findOwnEvent(tenantKey: number, eventId: string): number | null {
    const id = parseEventId(eventId);
    const found = id && eventAt.get(id.seq);
    if (!id || !found || found.tenantKey !== tenantKey) return null;
    return encodeEventId(id.seq, found.idTail) === eventId ? id.seq : null;
  }

  const replayed = (tenantKey: number, seq: number, filter?: ReplayFilter) => ({
    isSelected: selection.takes(tenantKey, seq, filter),
    payloadErased: contentOf(seq).isErased,
  });

  let hasCompletedLeft = false;

  /**
   * Completes replays whose runs have all ended, but that nobody completed. Here, whatever ends a run completes its replay,
   * too; only a move from PostgreSQL brings such replays, so one look is enough.
   */
  async function completeLeft(): Promise<void> {
    if (hasCompletedLeft) return;
    const found = unlessDamaged(() => left.all()) ?? [];
    if (found.length > 0) {
      await writer.submit<void>((tx) => {
        for (const { key } of found) ledger.completeIfEnded(key, tx.now);
      });
    }
    hasCompletedLeft = true;
  }

  /** @param turn receives the replay whose turn it is, before anything can fail */
  const queueBatch = ({ limit, passOver }: ReplayStep, turn: { key: number | null }) =>
    writer.submit<(Requeued & { tenantId: string; tenantKey: number }) | null>((tx) => {
      const replay = nextTurn.get();
      if (!replay) return null;
      turn.key = replay.key;
      const { tenantKey, tenantId } = replay;
      const held = hold(tx, tenantKey);
      filing.file(tx, tenantKey);
      if (held.gone) {
        move(replay.key, cancel(replay, tx.now), noneDone);
        return { replay: toReplay(byKey.get(replay.key)), ...toRefs(tenantKey, createQueued()), tenantId, tenantKey };
      }
      if (!mayGrow()) return refuse(noRoom());
      const next = selection.next(replay, limit);
      const { seqs = [], lookedTo = replay.toSeq } = next ?? {};
      const { key, kind } = replay;
      const inAll = createQueued();
      let done = noneDone;
      for (const seq of seqs) {
        if (replay.key === passOver) {
          reportDamage(damagedEvent(seq));
          done = plus(done, { ...noneDone, skipped: 1 });
          continue;
        }
        done = plus(done, requeueEvent(tx, held, seq, { key, kind, ...(next?.narrowing ?? nothing) }, inAll));
      }
      move(replay.key, advance(seqs, limit, replay.toSeq, lookedTo), done);
      ledger.completeIfEnded(replay.key, tx.now);
      const after = toReplay(byKey.get(replay.key));
      return { replay: after, ...toRefs(tenantKey, inAll), tenantId, tenantKey };
    });

  return {
    async replayEvent(tenantKey, replay, now, act) {
      await filing.whenFiled(tenantKey);
      return writer.submit<Requeued>((tx) => {
        const held = hold(tx, tenantKey);
        filing.file(tx, tenantKey);
        const seq = held.gone ? null : findOwnEvent(tenantKey, replay.eventId ?? "");
        const event = seq === null ? null : { seq, ...replayed(tenantKey, seq, replay.filter) };
        const start = startSingleReplay(held, event, mayGrow());
        if (start.kind === "refused") return refuse(start.error);
        const { eventSeq } = start;
        const key = Number(
          insert.run(
            replay.id,
            tenantKey,
            "single",
            ...keepLabel(tenantKey, replay.label),
            "queued",
            eventSeq,
            eventSeq,
            eventSeq,
            1,
            now,
            filterText(replay.filter),
          ).lastInsertRowid,
        );
        const inAll = createQueued();
        const narrowing = selection.narrowingOf(tenantKey, replay.filter) ?? nothing;
        const done = requeueEvent(tx, held, eventSeq, { key, kind: "single", ...narrowing }, inAll);
        move(key, { phase: "queued", cursorSeq: eventSeq, completedAt: null }, done);
        ledger.completeIfEnded(key, tx.now);
        if (act) audit.note(tx, held.tenant.id, act);
        return { replay: toReplay(byKey.get(key)), ...toRefs(tenantKey, inAll) };
      });
    },

    async startReplay(tenantKey, replay, now, limits, act) {
      await filing.whenFiled(tenantKey);
      // The count covers exactly this range: all events up to this one are filed, while some later ones may not be.
      const lastSeq = await writer.submit<number>((tx) => {
        filing.file(tx, tenantKey);
        return selection.lastSeq();
      });
      const { fromSeq, toSeq } = selection.rangeOf(replay, lastSeq);
      const selected = await selection.count(tenantKey, replay, lastSeq);
      return writer.submit<Replay>((tx) => {
        const { perDay } = limits;
        const bulk = {
          unfinished: unfinished.get(tenantKey)?.n ?? 0,
          nthLastBegunAt: perDay === null ? null : (bulkBegun.get(tenantKey, perDay - 1)?.createdAt ?? null),
        };
        const moment = { now, orderedNow: tx.orderedNow };
        const held = hold(tx, tenantKey);
        const start = startBulkReplay(held, bulk, limits, mayGrow(), moment);
        if (start.kind === "refused") return refuse(start.error);
        const { lastInsertRowid } = insert.run(
          replay.id,
          tenantKey,
          replay.kind,
          ...keepLabel(tenantKey, replay.label),
          "waiting",
          fromSeq,
          toSeq,
          Math.max(0, fromSeq - 1),
          selected,
          start.createdAt,
          filterText(replay.filter),
        );
        if (act) audit.note(tx, held.tenant.id, act);
        return toReplay(byKey.get(Number(lastInsertRowid)));
      });
    },

    async previewReplay(tenantKey, replay) {
      await filing.whenFiled(tenantKey);
      if (replay.kind !== "single") {
        const [selected, payloadsErased] = await Promise.all([
          selection.count(tenantKey, replay),
          selection.countErased(tenantKey, replay),
        ]);
        return { selected, payloadsErased };
      }
      const seq = findOwnEvent(tenantKey, replay.eventId ?? "");
      return previewOf(seq === null ? null : replayed(tenantKey, seq, replay.filter));
    },

    // A damaged event fails its batch: then the events go one by one, and the one that fails by itself is skipped.
    async queueReplayBatch(limit) {
      await completeLeft();
      let step: ReplayStep = { limit, passOver: null };
      const first = await readOrRefuse(
        () => reportDamage("The list of replays"),
        () => nextTurn.get(),
      );
      if (first === null) return null;
      for (;;) {
        const turn: { key: number | null } = { key: null };
        try {
          return await queueBatch(step, turn);
        } catch (error) {
          if (!isStorageDamaged(error) || turn.key === null || step.passOver !== null) throw error;
          step = { limit: 1, passOver: step.limit === 1 ? turn.key : null };
        }
      }
    },

    async replays(tenantKey, { offset, limit }) {
      const total = counted.get(tenantKey)?.n ?? 0;
      const keys = listed.all(tenantKey, limit, offset).map(({ key }) => key);
      const list = cursorOver(
        connection,
        { keys, isNear: true, read: (run, step) => run("replays", { ...step, tenantKey }) },
        toListedReplay,
      );
      return { replays: list, total };
    },

    async findReplay(tenantKey, replayId) {
      const row = byId.get(replayId, tenantKey);
      return row ? toReplay(row) : null;
    },

    async replayByKey({ replayKey }) {
      const row = byKey.get(replayKey);
      return row ? toReplay(row) : null;
    },
  };
}
