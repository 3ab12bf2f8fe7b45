import type { DeliveryState } from "../../domain/delivery.ts";
import { kindOf, othersKey } from "../../domain/failure-groups.ts";
import type { Moment } from "../../domain/moment.ts";
import type { ReplayRef } from "../../domain/replay.ts";
import { asQueued, type SettledRecord, settle } from "../../domain/settlement.ts";
import { headText } from "../attempt-heads.ts";
import { type AttemptRef, keptAttempts, type Settled, type Settlement } from "../deliveries.ts";
import type { Growth } from "../growth.ts";
import { endedStates } from "./ended-states.ts";
import {
  countFailuresText,
  type DescribedGroup,
  groupColumns,
  groupValues,
  type KnownGroups,
} from "./failure-counts.ts";
import type { KeptTenants } from "./kept-tenants.ts";
import { type JobOutcome, type LaneOptions, type MarkValues, markText } from "./lane.ts";
import { type Line, lockLines, releaseNext } from "./lines.ts";
import type { Numbers } from "./numbers.ts";
import { arrayText, numbersOf, packBytes } from "./parameters.ts";
import type { Pool, Transaction, Value } from "./pool.ts";

/** The record goes on waiting. */
const waits = 0;
const stateColumn = { PENDING: waits, ...endedStates } as const satisfies Record<DeliveryState, number>;

const given = `unnest($4::bigint[], $5::int[], $6::bigint[], $7::bigint[], $8::int[], $9::int[], $10::bigint[], $11::text[],
    $12::text[], $13::int[], $14::bigint[], $15::bigint[], $16::int[], $17::int[], $18::text[], $19::text[], $20::int[],
    $21::int[], $23::bigint[], $30::text[]) with ordinality
  as given (tenant_key, version, event_seq, key, run, state, at, error_reason, error_code, status_code, attempt_key,
    started_at, duration_ms, attempt_status, error, attempt_code, body_start, body_length, failure_key, head, i)`;

/**
 * For a tenant that is still as kept, finds the records that are still what this node was given to attempt. Each is looked up
 * (`offset 0`), and then found by its place: for a queue that was empty when it was vacuumed, the planner would walk all of
 * it, and compare each record with all that is given.
 */
const foundText = `select given.*, record.place, record.before_key from m, ${given} cross join lateral (
    select pending.ctid as place, pending.failure_key as before_key from tenant join pending on pending.tenant_key = tenant.key
    where tenant.key = given.tenant_key and tenant.version = given.version and tenant.deleted_at is null
      and pending.event_seq = given.event_seq and pending.key = given.key
      and pending.run = given.run and pending.owner = $2::int offset 0) record`;

/**
 * Another writer may have changed it meanwhile. Its keys would be the same, and comparing them would make the planner search
 * by them.
 */
const isStill = "pending.ctid = found.place and pending.run = found.run and pending.owner = $2::int";

/** What groups count for it: see `movesOf`. */
const movedText = `select tenant_key, before_key as failure_key, event_seq, -1 as waiting, 0 as failed, 0 as at
    from ended where before_key is not null
  union all select tenant_key, before_key, event_seq, -1, 0, 0 from retried where before_key is not null
  union all select tenant_key, failure_key, event_seq, 0, 1, started_at from ended where failure_key is not null
  union all select tenant_key, failure_key, event_seq, 1, 0, started_at from retried where failure_key is not null`;

const logged =
  "attempt_key, started_at, duration_ms, attempt_status, error, attempt_code, body_start, body_length, head";

const attemptOf = (name: string) => `select event_seq, tenant_key, attempt_key, webhook_key, attempts, started_at,
    duration_ms, attempt_status, error,
    case when body_length >= 0 then substring($22::bytea from body_start for body_length) end, replay_key, attempt_code, head
  from ${name}`;

/**
 * Settles what nearly every attempt is: one for a record that is still as the queue gave it out. What each attempt does to
 * its record was decided on what is kept; where the statement finds something else, the attempt is left out.
 */
export const settleText = `with m as (${markText}),
  found as materialized (${foundText}),
  ended as (
    delete from pending using found
    where found.state > ${waits} and ${isStill}
    returning pending.tenant_key, pending.event_seq, pending.key, pending.webhook_key, pending.run,
      pending.attempts_in_run + 1 as attempts_in_run, pending.attempts + 1 as attempts, pending.replay_key,
      pending.attempts_forgotten, pending.type_hash, found.state, found.at, found.error_reason, found.error_code, found.status_code, found.i,
      found.before_key, found.failure_key, ${logged}),
  retried as (
    update pending set owner = null, next_attempt_at = found.at, last_attempt_at = found.started_at,
      last_duration_ms = found.duration_ms,
      attempts_in_run = pending.attempts_in_run + 1, attempts = pending.attempts + 1,
      error_reason = found.error_reason, error_code = found.error_code, status_code = found.status_code,
      failure_key = found.failure_key
    from found
    where found.state = ${waits} and ${isStill}
    returning pending.tenant_key, pending.event_seq, pending.webhook_key, pending.attempts, pending.replay_key, found.i,
      found.before_key, found.failure_key, ${logged}),
  history as (
    insert into delivery (tenant_key, event_seq, key, webhook_key, run, attempts_in_run, attempts, replay_key,
      attempts_forgotten, last_attempt_at, last_duration_ms, error_reason, error_code, status_code, state, finished_at,
      failure_key, type_hash)
    select tenant_key, event_seq, key, webhook_key, run, attempts_in_run, attempts, replay_key, attempts_forgotten,
      started_at, duration_ms, error_reason, error_code, status_code, state, at, failure_key, type_hash
    from ended),
  log as (
    insert into attempt (event_seq, tenant_key, key, webhook_key, number, started_at, duration_ms, status_code, error,
      response_body, replay_key, error_code, answer_head)
    ${attemptOf("ended")} union all ${attemptOf("retried")}),
  described as (
    insert into failure_group (${groupColumns})
    select given.* from m, unnest($24::bigint[], $25::bigint[], $26::bigint[], $27::text[], $28::int[], $29::text[]) as given
    on conflict do nothing),
  failures as (${countFailuresText(movedText, "$1::smallint")}),
  counted as (
    insert into usage as u (tenant_key, slot, month, used, granted, events, pending, delivered, failed)
    select tenant_key, $1::smallint, 0, 0, 0, 0, -count(*), count(*) filter (where state = ${endedStates.DELIVERED}),
      count(*) filter (where state = ${endedStates.FAILED})
    from ended group by tenant_key
    on conflict (tenant_key, slot) do update set pending = u.pending + excluded.pending,
      delivered = u.delivered + excluded.delivered, failed = u.failed + excluded.failed),
  replayed as (
    insert into replay_count as c (tenant_key, replay_key, slot, delivered, failed, superseded)
    select tenant_key, replay_key, $1::smallint, count(*) filter (where state = ${endedStates.DELIVERED}),
      count(*) filter (where state = ${endedStates.FAILED}), 0
    from ended where replay_key is not null group by tenant_key, replay_key
    on conflict (tenant_key, replay_key, slot) do update set delivered = c.delivered + excluded.delivered,
      failed = c.failed + excluded.failed)
  select (select count(*) from m)::int as marked,
    array(select i from ended union all select i from retried)::text as settled`;

/** False: some of its attempts have to be forgotten. */
export const isOrdinary = ({ delivery }: Settlement): boolean => delivery.attempts < keptAttempts;

/** Null: it has to be settled alone. */
export type LaneSettlement = Settled | null;

export interface SettleLaneOptions extends Growth {
  readonly pool: Pool;
  readonly kept: KeptTenants;
  readonly numbers: Numbers;
  readonly groups: KnownGroups;
  /** Of the node whose lane it is. */
  readonly incarnation: number;
  moment(): Moment;
  /** Called when runs of these have ended; awaited before anybody is answered. */
  onEnded(replays: readonly ReplayRef[]): Promise<void>;
}

interface PlannedSettlement {
  readonly settlement: Settlement;
  readonly version: number;
  readonly becomes: SettledRecord;
  /** The failure that the record counts under. */
  readonly group: DescribedGroup | null;
  readonly attempt: AttemptRef;
}

export function settleLane({
  pool,
  kept,
  numbers,
  groups,
  incarnation,
  moment,
  mayGrow,
  onEnded,
}: SettleLaneOptions): Pick<LaneOptions<Settlement, LaneSettlement>, "write" | "recall"> {
  /** The plan of the batch in progress. */
  let planned: readonly (PlannedSettlement | null)[] = [];

  function plan(settlement: Settlement, { orderedNow }: Moment): PlannedSettlement | null {
    const { delivery } = settlement;
    // An earlier node that this process was has attempted it: this one may own it by now, for another attempt.
    if (delivery.owner !== incarnation) return null;
    const known = kept.get(delivery.tenantKey);
    if (!known) return null;
    const { becomes, isLate } = settle(asQueued(delivery), known.webhooks, settlement, orderedNow);
    if (!becomes || isLate) return null;
    const { tenantKey, eventSeq } = delivery;
    const kind = kindOf(becomes, delivery.webhookKey, settlement.attempt.responseBody);
    const group = kind && { tenantKey, key: groups.keyOf(tenantKey, kind), kind };
    const attempt = { tenantKey, eventSeq, key: numbers.nextKey() };
    return { settlement, version: known.version, becomes, group, attempt };
  }

  async function writeAll(
    given: readonly PlannedSettlement[],
    values: readonly Value[],
    run: Transaction["run"] = pool.write,
  ): Promise<Written | null> {
    const [row] = await run<{ marked: number; settled: string }>(settleText, values);
    if (row?.marked !== 1) return null;
    return { settled: new Set(numbersOf(row.settled).map((i) => given[i - 1] ?? null)), released: new Set() };
  }

  /** Also releases what follows these records in their lines. */
  const writeHeads = (
    given: readonly PlannedSettlement[],
    values: readonly Value[],
    { now }: Moment,
  ): Promise<Written | null> =>
    pool.transact(async (tx) => {
      const webhooks = given.flatMap((one) => headOf(one)?.webhookKey ?? []);
      await lockLines(tx, webhooks);
      const written = await writeAll(given, values, tx.run);
      if (written === null) return null;
      const ended = given.flatMap((one) => (written.settled.has(one) ? (headOf(one) ?? []) : []));
      const released = await releaseNext(tx, ended, now);
      return { ...written, released: new Set(released.map(({ webhookKey }) => webhookKey)) };
    });

  /** @param released webhooks that now have another delivery due; null: it is not known which */
  async function outcomesOf(
    isSettled: (i: number) => boolean,
    released: ReadonlySet<number> | null,
  ): Promise<JobOutcome<LaneSettlement>[]> {
    const ended = new Map<number, ReplayRef>();
    const outcomes = planned.map((one, i): JobOutcome<LaneSettlement> => {
      if (!one || !isSettled(i)) return { result: null };
      const { tenantKey, replayKey } = one.settlement.delivery;
      if (replayKey !== null && one.becomes.state !== "PENDING") ended.set(replayKey, { tenantKey, replayKey });
      const head = headOf(one);
      const hasReleased = head !== null && (released === null || released.has(head.webhookKey));
      return { result: { kind: "settled", attempt: one.attempt, ...(hasReleased && { hasReleased }) } };
    });
    if (ended.size > 0) await onEnded([...ended.values()]);
    return outcomes;
  }

  return {
    async write(settlements, mark) {
      const failed = settlements.filter(({ attempt }) => attempt.errorCode !== null);
      if (failed.length > 0) await groups.learn(failed.map(({ delivery }) => delivery.tenantKey));
      const at = moment();
      planned = settlements.map((settlement) => plan(settlement, at));
      const given = planned.filter((one) => one !== null);
      const values = valuesOf(given, mark, mayGrow());
      const written = given.some((one) => headOf(one) !== null)
        ? await writeHeads(given, values, at)
        : await writeAll(given, values);
      if (written === null) return null;
      const { settled, released } = written;
      return outcomesOf((i) => settled.has(planned[i] ?? null), released);
    },

    async recall() {
      const found = await Promise.all(
        planned.map(async (one) => {
          if (!one) return false;
          const { tenantKey, eventSeq, key } = one.attempt;
          const rows = await pool.read(
            "select 1 from attempt where event_seq = $1::bigint and tenant_key = $2::bigint and key = $3::bigint",
            [eventSeq, tenantKey, key],
          );
          return rows.length > 0;
        }),
      );
      return outcomesOf((i) => found[i] === true, null);
    },
  };
}

interface Written {
  readonly settled: ReadonlySet<PlannedSettlement | null>;
  readonly released: ReadonlySet<number>;
}

/** The line whose head ends. */
function headOf({ settlement, becomes }: PlannedSettlement): Line | null {
  const { webhookKey, orderHash } = settlement.delivery;
  return orderHash === null || becomes.state === "PENDING" ? null : { webhookKey, orderHash };
}

const noBytes = new Uint8Array();

function valuesOf(planned: readonly PlannedSettlement[], mark: MarkValues, keeps: boolean): Value[] {
  const bodyOf = ({ settlement }: PlannedSettlement) => (keeps ? settlement.attempt.responseBody : null);
  const bodies = packBytes(planned.map((one) => bodyOf(one) ?? noBytes));
  const list = (column: (one: PlannedSettlement) => number | string | null) => arrayText(planned.map(column));
  return [
    ...mark,
    list(({ attempt }) => attempt.tenantKey),
    list(({ version }) => version),
    list(({ attempt }) => attempt.eventSeq),
    list(({ settlement }) => settlement.delivery.deliveryKey),
    list(({ settlement }) => settlement.delivery.run),
    list(({ becomes }) => stateColumn[becomes.state]),
    list(({ becomes }) => becomes.nextAttemptAt ?? becomes.finishedAt),
    list(({ becomes }) => becomes.errorReason),
    list(({ becomes }) => becomes.errorCode),
    list(({ becomes }) => becomes.statusCode),
    list(({ attempt }) => attempt.key),
    list(({ settlement }) => settlement.attempt.startedAt),
    list(({ settlement }) => settlement.attempt.durationMs),
    list(({ settlement }) => settlement.attempt.statusCode),
    list(({ settlement }) => settlement.attempt.error),
    list(({ settlement }) => settlement.attempt.errorCode),
    bodies.starts,
    list((one) => bodyOf(one)?.length ?? -1),
    bodies.bytes,
    list(({ group }) => group?.key ?? null),
    ...groupValues(groupsOf(planned)),
    list(({ settlement }) => (keeps ? headText(settlement.attempt.answerHead) : null)),
  ];
}

/** Without duplicates. */
function groupsOf(planned: readonly PlannedSettlement[]): DescribedGroup[] {
  const groups = new Map<string, DescribedGroup>();
  for (const { group } of planned) {
    if (group !== null && group.key !== othersKey) groups.set(`${group.tenantKey} ${group.key}`, group);
  }
  return [...groups.values()];
}
