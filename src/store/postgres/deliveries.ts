import type { DueDelivery } from "../../domain/delivery.ts";
import { kindOf, movesOf } from "../../domain/failure-groups.ts";
import { type FoundRecord, type RecordChange, settle } from "../../domain/settlement.ts";
import { headText } from "../attempt-heads.ts";
import { type AttemptRef, type DeliveryVerbs, keptAttempts, type Settled, type Settlement } from "../deliveries.ts";
import type { Growth } from "../growth.ts";
import type { Connection } from "./connection.ts";
import { endedStates } from "./ended-states.ts";
import { laneSlots } from "./event-schema.ts";
import { describeGroup, FailureTally } from "./failure-counts.ts";
import { type CounterDelta, count, hold, rareLane } from "./held-tenants.ts";
import type { HotPaths } from "./hot-paths.ts";
import { lockLines, releaseNext } from "./lines.ts";
import type { Node } from "./nodes.ts";
import type { Transaction, Value } from "./pool.ts";
import { completeReplays, countReplay } from "./replay-counts.ts";
import { isOrdinary, type LaneSettlement } from "./settle-lane.ts";
import type { WriteTransaction } from "./writes.ts";

/** How many old attempts one new attempt removes: more than one, so that a log from before the limit shrinks in time. */
const forgottenAtOnce = 10;

const recordOf = "tenant_key = $1::bigint and event_seq = $2::bigint and key = $3::bigint";

type Place = "pending" | "delivery";

interface Found extends FoundRecord {
  readonly place: Place;
}

/** How deliveries end. */
export function deliveryVerbs(
  { pool, writes, numbers, clock, node, isNode }: Connection,
  { mayGrow }: Growth,
  { lanes, kept, groups, underWay, holdings }: HotPaths,
): Pick<DeliveryVerbs, "settle" | "completeResponseBody"> {
  /** Handles one attempt with its tenant and its record locked, so that every rule can be checked. */
  async function settleAlone(tx: WriteTransaction, settlement: Settlement): Promise<Settled & { endsRun: boolean }> {
    const { delivery } = settlement;
    const { tenantKey } = delivery;
    const owner = node();
    const held = await hold(tx, tenantKey);
    if (held.gone) return { kind: "gone", attempt: null, endsRun: false };
    if (delivery.orderHash !== null) await lockLines(tx, [delivery.webhookKey]);
    const found = await find(tx, delivery);
    const change = settle(found, held.webhooks, settlement, tx.orderedNow);
    const kind = change.becomes && kindOf(change.becomes, delivery.webhookKey, settlement.attempt.responseBody);
    if (kind) await groups.learn([tenantKey]);
    const failureKey = kind && groups.keyOf(tenantKey, kind);
    const attempts = found && (await write(tx, owner, settlement, found, change, failureKey));
    if (found && change.becomes) {
      if (kind && failureKey !== null) await describeGroup(tx, { tenantKey, key: failureKey, kind });
      const tally = new FailureTally();
      const moves = movesOf(found, { state: change.becomes.state, failureKey });
      tally.add(delivery.eventSeq, moves, settlement.attempt.startedAt);
      await tally.write(tx, owner, tenantKey);
    }
    const endsRun = change.replay !== null && delivery.replayKey !== null;
    if (endsRun) await countRun(tx, owner, settlement, change);
    const successor = change.isLate ? await countForSuccessor(tx, delivery) : null;
    const attempt = await log(tx, settlement, successor?.attempts ?? attempts ?? delivery.attempts + 1);
    if (delivery.attempts >= keptAttempts) {
      const hasEnded = change.becomes !== null && change.becomes.state !== "PENDING";
      const place = hasEnded ? "delivery" : found?.place;
      const counted =
        successor ?? (place !== undefined && attempts !== null && { place, key: delivery.deliveryKey, attempts });
      if (counted) await forgetOldAttempts(tx, delivery, counted);
    }
    const hasReleased = await release(tx, delivery, change);
    return { kind: change.kind, attempt, endsRun, ...(hasReleased && { hasReleased }) };
  }

  /** Releases the next delivery of its line. @returns whether there was one */
  async function release(tx: WriteTransaction, delivery: DueDelivery, { becomes }: RecordChange): Promise<boolean> {
    const { webhookKey, orderHash } = delivery;
    if (orderHash === null || becomes === null || becomes.state === "PENDING") return false;
    return (await releaseNext(tx, [{ webhookKey, orderHash }], tx.now)).length > 0;
  }

  async function log({ run }: Transaction, { delivery, attempt }: Settlement, number: number): Promise<AttemptRef> {
    const { tenantKey, eventSeq } = delivery;
    const key = numbers.nextKey();
    await run(
      `insert into attempt (tenant_key, event_seq, key, webhook_key, number, started_at, duration_ms, status_code, error,
         response_body, replay_key, error_code, answer_head)
       values ($1::bigint, $2::bigint, $3::bigint, $4::bigint, $5::int, $6::bigint, $7::int, $8::int, $9::text, $10::bytea,
         $11::bigint, $12::text, $13::text)`,
      [
        tenantKey,
        eventSeq,
        key,
        delivery.webhookKey,
        number,
        attempt.startedAt,
        attempt.durationMs,
        attempt.statusCode,
        attempt.error,
        mayGrow() ? attempt.responseBody : null,
        delivery.replayKey,
        attempt.errorCode,
        mayGrow() ? headText(attempt.answerHead) : null,
      ],
    );
    return { tenantKey, eventSeq, key };
  }

  /** Tries again if the tenant has changed since it was kept. */
  async function byLane(settlement: Settlement): Promise<LaneSettlement> {
    const { tenantKey } = settlement.delivery;
    let known = kept.get(tenantKey) ?? (await kept.read(tenantKey));
    while (known) {
      const settled = await lanes.settle(settlement);
      if (settled) return settled;
      const { version } = known;
      kept.forget(tenantKey);
      known = await kept.read(tenantKey);
      if (known?.version === version) return null;
    }
    return null;
  }

  /** What an earlier node that this process was has attempted may be held again by now, for another attempt. */
  function endHolding(delivery: DueDelivery): void {
    if (delivery.owner !== undefined && isNode(delivery.owner)) holdings.end([delivery]);
  }

  return {
    async settle(settlement) {
      const settled = isOrdinary(settlement) ? await byLane(settlement) : null;
      if (settled) {
        endHolding(settlement.delivery);
        return settled;
      }
      const { endsRun, ...late } = await underWay.run(() => writes.submit((tx) => settleAlone(tx, settlement)));
      endHolding(settlement.delivery);
      const { tenantKey, replayKey } = settlement.delivery;
      if (endsRun && replayKey !== null) await completeReplays(pool, [{ tenantKey, replayKey }], clock.now());
      return late;
    },

    async completeResponseBody({ tenantKey, eventSeq, key }, responseBody) {
      if (!mayGrow()) return;
      await pool.write(
        `update attempt set response_body = $4::bytea where ${recordOf}
          and exists (select 1 from tenant where tenant.key = $1::bigint and deleted_at is null)`,
        [tenantKey, eventSeq, key, responseBody],
      );
    },
  };
}

const valuesOf = ({ tenantKey, eventSeq, deliveryKey }: DueDelivery): [number, number, number] => [
  tenantKey,
  eventSeq,
  deliveryKey,
];

/**
 * Locks a record. Looks in the queue first: a lane may move it out of there meanwhile, and nobody moves it back without the
 * tenant.
 */
async function find({ run }: Transaction, delivery: DueDelivery): Promise<Found | null> {
  const [waiting] = await run<Pick<FoundRecord, "run" | "errorCode" | "failureKey"> & { owner: number | null }>(
    `select run, error_code as "errorCode", failure_key::float8 as "failureKey", owner from pending where ${recordOf} for update`,
    valuesOf(delivery),
  );
  if (waiting) {
    const isElsewhere = waiting.owner !== null && waiting.owner !== delivery.owner;
    const { owner: _, ...rest } = waiting;
    return { place: "pending", state: "PENDING", ...rest, isElsewhere };
  }
  const [ended] = await run<Pick<FoundRecord, "run" | "errorCode" | "failureKey"> & { state: number }>(
    `select state, run, error_code as "errorCode", failure_key::float8 as "failureKey" from delivery where ${recordOf} for update`,
    valuesOf(delivery),
  );
  if (!ended) return null;
  return { ...ended, place: "delivery", state: ended.state === endedStates.DELIVERED ? "DELIVERED" : "FAILED" };
}

/** Writes what the attempt does to its record, which is no longer owned for it. @returns the record's number of attempts */
async function write(
  tx: Transaction,
  owner: Node,
  { delivery, attempt }: Settlement,
  found: Found,
  { becomes }: RecordChange,
  failureKey: number | null,
): Promise<number> {
  const values = valuesOf(delivery);
  if (!becomes) {
    return found.place === "delivery"
      ? countOne(tx, `update delivery set attempts = attempts + 1 where ${recordOf} returning attempts`, values)
      : countOne(
          tx,
          `update pending set attempts = attempts + 1, owner = nullif(owner, $4::int) where ${recordOf} returning attempts`,
          [...values, delivery.owner ?? null],
        );
  }
  const outcome = [
    attempt.startedAt,
    attempt.durationMs,
    becomes.errorReason,
    becomes.errorCode,
    becomes.statusCode,
    failureKey,
  ];
  if (becomes.state === "PENDING") {
    return countOne(
      tx,
      `update pending set attempts = attempts + 1, attempts_in_run = attempts_in_run + 1, owner = null,
         last_attempt_at = $4::bigint, last_duration_ms = $5::int, error_reason = $6::text,
         error_code = $7::text, status_code = $8::int, failure_key = $9::bigint, next_attempt_at = $10::bigint
       where ${recordOf} returning attempts`,
      [...values, ...outcome, becomes.nextAttemptAt],
    );
  }
  const ended = [...outcome, endedStates[becomes.state], becomes.finishedAt];
  const { tenantKey } = delivery;
  if (found.place === "delivery") {
    if (found.state !== becomes.state) await count(tx, owner, tenantKey, { failed: -1, delivered: 1 });
    return countOne(
      tx,
      `update delivery set attempts = attempts + 1, attempts_in_run = attempts_in_run + 1,
         last_attempt_at = $4::bigint, last_duration_ms = $5::int, error_reason = $6::text,
         error_code = $7::text, status_code = $8::int, failure_key = $9::bigint, state = $10::smallint, finished_at = $11::bigint
       where ${recordOf} returning attempts`,
      [...values, ...ended],
    );
  }
  const delta: CounterDelta = becomes.state === "DELIVERED" ? { delivered: 1 } : { failed: 1 };
  await count(tx, owner, tenantKey, { pending: -1, ...delta });
  return countOne(
    tx,
    `with ended as (delete from pending where ${recordOf} returning *)
     insert into delivery (tenant_key, event_seq, key, webhook_key, run, attempts_in_run, attempts, replay_key,
       attempts_forgotten, last_attempt_at, last_duration_ms, error_reason, error_code, status_code, failure_key,
       state, finished_at, type_hash)
     select tenant_key, event_seq, key, webhook_key, run, attempts_in_run + 1, attempts + 1, replay_key,
       attempts_forgotten, $4::bigint, $5::int, $6::text, $7::text, $8::int, $9::bigint,
       $10::smallint, $11::bigint, type_hash
     from ended returning attempts`,
    [...values, ...ended],
  );
}

async function countOne({ run }: Transaction, text: string, values: readonly Value[]): Promise<number> {
  const [row] = await run<{ attempts: number }>(text, values);
  if (!row) throw new Error("A record that was locked is not there");
  return row.attempts;
}

/** Counts for the replay that began the run. */
async function countRun(
  tx: Transaction,
  { slot }: Node,
  { delivery: { tenantKey, replayKey } }: Settlement,
  { replay }: RecordChange,
): Promise<void> {
  if (replayKey === null || replay === null) return;
  const added = replay === "corrected" ? { failed: -1, delivered: 1 } : { [replay]: 1 };
  await countReplay(tx, { tenantKey, replayKey }, slot * laneSlots + rareLane, added);
}

interface Counted {
  readonly place: Place;
  readonly key: number;
  readonly attempts: number;
}

/** The attempt also counts for the record that continues for the URL of a removed webhook that was registered again. */
async function countForSuccessor(
  { run }: Transaction,
  { tenantKey, eventSeq, url }: DueDelivery,
): Promise<Counted | null> {
  for (const place of ["pending", "delivery"] as const) {
    const [successor] = await run<{ key: number; attempts: number }>(
      `update ${place} set attempts = attempts + 1
       where tenant_key = $1::bigint and event_seq = $2::bigint and webhook_key = (
         select key from webhook where tenant_key = $1::bigint and url = $3::text and removed_at is null)
       returning key::float8 as key, attempts`,
      [tenantKey, eventSeq, url],
    );
    if (successor) return { place, ...successor };
  }
  return null;
}

/** Keeps the log of a record to its limit. */
async function forgetOldAttempts(
  { run }: Transaction,
  { tenantKey, eventSeq, webhookKey }: DueDelivery,
  { place, key, attempts }: Counted,
): Promise<void> {
  const forgotten = await run(
    `delete from attempt where tenant_key = $1::bigint and event_seq = $2::bigint and key in (
       select key from attempt where tenant_key = $1::bigint and event_seq = $2::bigint and webhook_key = $3::bigint
         and number <= $4::int order by key limit ${forgottenAtOnce})
     returning 1`,
    [tenantKey, eventSeq, webhookKey, attempts - keptAttempts],
  );
  if (forgotten.length === 0) return;
  await run(`update ${place} set attempts_forgotten = attempts_forgotten + $4::int where ${recordOf}`, [
    tenantKey,
    eventSeq,
    key,
    forgotten.length,
  ]);
}
