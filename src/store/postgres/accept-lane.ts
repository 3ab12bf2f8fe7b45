import { accept } from "../../domain/acceptance.ts";
import { requestAbandoned } from "../../domain/errors.ts";
import type { Moment } from "../../domain/moment.ts";
import { noEvents, utcMonth } from "../../domain/tenant-state.ts";
import { ingestedAtMs } from "../../lib/id.ts";
import type { Growth } from "../growth.ts";
import type { AcceptedEvents, AcceptRequest } from "../store.ts";
import { endedStates } from "./ended-states.ts";
import { type PlannedEvents, planEvents, tailBytes } from "./event-rows.ts";
import type { KeptTenant, KeptTenants } from "./kept-tenants.ts";
import { type JobOutcome, type LaneOptions, type MarkValues, markText } from "./lane.ts";
import type { Numbers } from "./numbers.ts";
import { arrayText, numbersOf, packBytes } from "./parameters.ts";
import type { Pool, Value } from "./pool.ts";

/**
 * Accepts what nearly every request is: of a tenant that is kept, with nothing to look up. Whether what is kept is still so,
 * and whether the lane may spend so much, is for the statement to say; the tenants of which it is not are left out.
 *
 * Nothing is joined but with keys of tenants: rows are found by their places in the arrays, which each tenant's row carries.
 */
export const acceptText = `with m as (${markText}),
  taken as (
    update usage set used = usage.used + given.events, events = usage.events + given.events,
      pending = usage.pending + given.pending, failed = usage.failed + given.failed
    from m, unnest($4::bigint[], $5::int[], $6::int[], $7::int[], $8::int[], $9::int[], $10::int[], $11::int[])
        as given (tenant_key, version, events, last_event, pending, last_pending, failed, last_failed), tenant
    where usage.tenant_key = given.tenant_key and usage.slot = $1::smallint and usage.month >= $12::int
      and usage.used + given.events <= usage.granted
      and tenant.key = given.tenant_key and tenant.version = given.version and tenant.deleted_at is null
    returning usage.tenant_key, given.events, last_event, given.pending, last_pending, given.failed, last_failed),
  stored as (
    insert into event (seq, tenant_key, id_tail, payload)
    select ($13::bigint[])[i], tenant_key, substring($14::bytea from (i - 1) * ${tailBytes} + 1 for ${tailBytes}),
      substring($15::bytea from ($16::int[])[i] for ($17::int[])[i])
    from taken cross join lateral generate_series(last_event - events + 1, last_event) i),
  queued as (
    insert into pending (tenant_key, event_seq, key, webhook_key, run, attempts_in_run, attempts, owner, next_attempt_at)
    select tenant_key, ($18::bigint[])[i], ($19::bigint[])[i], ($20::bigint[])[i], 1, 0, 0,
      case when ($21::int[])[i] = 1 then $2::int end, ($22::bigint[])[i]
    from taken cross join lateral generate_series(last_pending - pending + 1, last_pending) i),
  undeliverable as (
    insert into delivery (tenant_key, event_seq, key, run, attempts_in_run, attempts, state, finished_at, error_reason,
      error_code)
    select tenant_key, ($23::bigint[])[i], ($24::bigint[])[i], 1, 0, 0, ${endedStates.FAILED}, ($25::bigint[])[i],
      $26::text, $27::text
    from taken cross join lateral generate_series(last_failed - failed + 1, last_failed) i)
  select (select count(*) from m)::int as marked, array(select tenant_key from taken)::text as taken`;

/** Null: it has to be accepted alone. */
export type LaneAcceptance = AcceptedEvents | null;

export interface AcceptLaneOptions extends Growth {
  readonly pool: Pool;
  readonly kept: KeptTenants;
  readonly numbers: Numbers;
  moment(): Moment;
}

/** What one request comes to, before it is known whether its tenant is taken. */
type Planned = PlannedEvents | { readonly error: ReturnType<typeof requestAbandoned> } | null;

export function acceptLane({
  pool,
  kept,
  numbers,
  moment,
  mayGrow,
}: AcceptLaneOptions): Pick<LaneOptions<AcceptRequest, LaneAcceptance>, "write" | "recall"> {
  /** Of the batch under way. */
  let planned: readonly Planned[] = [];

  function plan(request: AcceptRequest, at: Moment): Planned {
    if (request.isAbandoned?.()) return { error: requestAbandoned() };
    const known = kept.get(request.tenantKey);
    if (!known || !isPlain(known, request)) return null;
    const submission = {
      events: request.payloads.length,
      apiKey: known.apiKeys.get(request.apiKeyId) ?? null,
      fingerprint: null,
      earlier: null,
      mayGrow: mayGrow(),
    };
    const acceptance = accept({ ...known, gone: false, counters: noEvents }, submission, at);
    return acceptance.kind === "accepted" ? planEvents(numbers, known.tenant, request, acceptance.records) : null;
  }

  const outcomesOf = (taken: ReadonlySet<number>): JobOutcome<LaneAcceptance>[] =>
    planned.map((one) => {
      if (one && "error" in one) return one;
      return { result: one && taken.has(one.tenantKey) ? one.accepted : null };
    });

  return {
    async write(requests, mark) {
      const at = moment();
      planned = requests.map((request) => plan(request, at));
      const [row] = await pool.write<{ marked: number; taken: string }>(acceptText, valuesOf(planned, kept, mark));
      return row?.marked === 1 ? outcomesOf(new Set(numbersOf(row.taken))) : null;
    },

    async recall() {
      const taken = new Set<number>();
      for (const one of planned) {
        const first = one && "events" in one ? one.events[0] : undefined;
        if (!one || !("events" in one) || !first || taken.has(one.tenantKey)) continue;
        const found = await pool.read("select 1 from event where seq = $1::bigint and tenant_key = $2::bigint", [
          first.seq,
          one.tenantKey,
        ]);
        if (found.length > 0) taken.add(one.tenantKey);
      }
      return outcomesOf(taken);
    },
  };
}

/** Nothing has to be looked up for it, and no webhook becomes a used one by it. */
export const isPlain = ({ webhooks }: KeptTenant, { idempotency }: AcceptRequest): boolean =>
  idempotency === undefined && webhooks.every(({ used }) => used === true);

/** Requests tenant by tenant, each with the places of its rows in the arrays of all. */
function valuesOf(planned: readonly Planned[], kept: KeptTenants, mark: MarkValues): Value[] {
  const byTenant = new Map<number, PlannedEvents[]>();
  for (const one of planned) {
    if (!one || !("events" in one)) continue;
    const others = byTenant.get(one.tenantKey);
    if (others) others.push(one);
    else byTenant.set(one.tenantKey, [one]);
  }
  const tenants: number[][] = [[], [], [], [], [], [], [], []];
  const seqs: number[] = [];
  const tails: Uint8Array[] = [];
  const payloads: Uint8Array[] = [];
  const pending: number[][] = [[], [], [], [], []];
  const failed: number[][] = [[], [], []];
  let reason: string | null = null;
  let code: string | null = null;
  for (const [tenantKey, those] of byTenant) {
    const before = [seqs.length, pending[0]?.length ?? 0, failed[0]?.length ?? 0] as const;
    for (const one of those) {
      for (const { seq, tail, payload } of one.events) {
        seqs.push(seq);
        tails.push(tail);
        payloads.push(payload);
      }
      for (const { eventSeq, key, webhookKey, isOwned, nextAttemptAt } of one.pending) {
        pushEach(pending, [eventSeq, key, webhookKey, isOwned ? 1 : 0, nextAttemptAt]);
      }
      for (const record of one.failed) {
        pushEach(failed, [record.eventSeq, record.key, record.finishedAt]);
        ({ reason, code } = record);
      }
    }
    const after = [seqs.length, pending[0]?.length ?? 0, failed[0]?.length ?? 0] as const;
    pushEach(tenants, [
      tenantKey,
      kept.get(tenantKey)?.version ?? 0,
      ...[after[0] - before[0], after[0], after[1] - before[1], after[1], after[2] - before[2], after[2]],
    ]);
  }
  const packed = packBytes(payloads);
  return [
    ...mark,
    ...tenants.map(arrayText),
    utcMonth(ingestedAtMs(seqs.at(-1) ?? 0)),
    arrayText(seqs),
    packBytes(tails).bytes,
    packed.bytes,
    packed.starts,
    packed.lengths,
    ...pending.map(arrayText),
    ...failed.map(arrayText),
    reason,
    code,
  ];
}

function pushEach(lists: readonly number[][], values: readonly number[]): void {
  for (let i = 0; i < lists.length; i++) lists[i]?.push(values[i] ?? 0);
}
