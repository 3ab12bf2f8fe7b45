import { accept, type EarlierAnswer, type NewRecord } from "../../domain/acceptance.ts";
import { type DomainError, requestAbandoned } from "../../domain/errors.ts";
import type { Moment } from "../../domain/moment.ts";
import { noEvents, utcMonth } from "../../domain/tenant-state.ts";
import type { TraceContext } from "../../domain/trace-context.ts";
import { isEnabled } from "../../domain/webhook.ts";
import { ingestedAtMs } from "../../lib/id.ts";
import type { Growth } from "../growth.ts";
import type { AcceptedEvents, AcceptRequest } from "../store.ts";
import { endedStates } from "./ended-states.ts";
import { disowned, type PlanDeps, type PlannedEvents, planEvents, repeatedAnswer, tailBytes } from "./event-rows.ts";
import { heldBack } from "./event-schema.ts";
import { countFailuresText, type DescribedGroup, groupColumns, groupValues } from "./failure-counts.ts";
import type { KeptTenants } from "./kept-tenants.ts";
import { type JobOutcome, type LaneOptions, type MarkValues, markText } from "./lane.ts";
import { type LockedLines, linesOf, lockLines, noLines, readLines } from "./lines.ts";
import { arrayText, numbersOf, packBytes } from "./parameters.ts";
import type { Pool, Value } from "./pool.ts";

/** In an array without nulls an element is found directly; 0 stands for null. */
const orNull = (array: string) => `nullif((${array}::bigint[])[i], 0)`;

/**
 * Accepts what nearly every request is: one of a tenant that is kept, with nothing to look up. The statement itself decides
 * whether what is kept is still current and whether the lane may spend that much; tenants for which either fails are left
 * out.
 *
 * Nothing is joined except tenant keys: rows are found by their positions in the arrays, which each tenant's row carries. The
 * slot comes with each tenant's row (and `offset 0` keeps it there): were it a constant, the planner would walk the whole
 * index of `usage` for the rows of the slot, and look each of them up in the given rows.
 */
const acceptTextOf = ({ hasKeys }: { hasKeys: boolean }) => `with m as (${markText}),
  taken as (
    update usage set used = usage.used + given.events, events = usage.events + given.events,
      pending = usage.pending + given.pending, failed = usage.failed + given.ended - given.skipped,
      skipped = usage.skipped + given.skipped
    from m, (
      select *, $1::smallint as slot
      from unnest($4::bigint[], $5::int[], $6::int[], $7::int[], $8::int[], $9::int[], $10::int[], $11::int[], $28::int[],
          $29::int[], $41::int[])
        as given (tenant_key, version, events, last_event, pending, last_pending, ended, last_ended, remembered,
          last_remembered, skipped)
      offset 0) as given, tenant
    where usage.tenant_key = given.tenant_key and usage.slot = given.slot and usage.month >= $12::int
      and usage.used + given.events <= usage.granted
      and tenant.key = given.tenant_key and tenant.version = given.version and tenant.deleted_at is null
    returning usage.tenant_key, given.events, last_event, given.pending, last_pending, given.ended, last_ended,
      remembered, last_remembered),
  stored as (
    insert into event (seq, tenant_key, id_tail, payload, type, trace${hasKeys ? ", ordering_key" : ""})
    select ($13::bigint[])[i], tenant_key, substring($14::bytea from (i - 1) * ${tailBytes} + 1 for ${tailBytes}),
      substring($15::bytea from ($16::int[])[i] for ($17::int[])[i]), ($36::text[])[i],
      ($39::text[])[i]${hasKeys ? ", ($50::text[])[i]" : ""}
    from taken cross join lateral generate_series(last_event - events + 1, last_event) i),
  queued as (
    insert into pending (tenant_key, event_seq, key, webhook_key, run, attempts_in_run, attempts, owner, next_attempt_at,
      type_hash${hasKeys ? ", order_hash" : ""})
    select tenant_key, ($18::bigint[])[i], ($19::bigint[])[i], ($20::bigint[])[i], 1, 0, 0,
      case when ($21::int[])[i] = 1 then $2::int${hasKeys ? ` when ($21::int[])[i] = 2 then ${heldBack}` : ""} end,
      ($22::bigint[])[i], ${orNull("$37")}${hasKeys ? `, ${orNull("$51")}` : ""}
    from taken cross join lateral generate_series(last_pending - pending + 1, last_pending) i),
  ending as (
    insert into delivery (tenant_key, event_seq, key, webhook_key, run, attempts_in_run, attempts, state, finished_at,
      error_reason, error_code, type_hash, failure_key)
    select tenant_key, ($23::bigint[])[i], ($24::bigint[])[i], nullif(($42::bigint[])[i], 0), 1, 0, 0,
      ($40::smallint[])[i], ($25::bigint[])[i], ($26::text[])[i], ($27::text[])[i], ${orNull("$38")},
      case when ($40::smallint[])[i] = ${endedStates.FAILED} then ($43::bigint[])[i] end
    from taken cross join lateral generate_series(last_ended - ended + 1, last_ended) i),
  described as (
    insert into failure_group (${groupColumns})
    select given.* from m, unnest($44::bigint[], $45::bigint[], $46::bigint[], $47::text[], $48::int[], $49::text[]) as given
    on conflict do nothing),
  failures as (${countFailuresText(
    `select tenant_key, ($43::bigint[])[i] as failure_key, ($23::bigint[])[i] as event_seq, 0 as waiting, 1 as failed,
      ($25::bigint[])[i] as at
    from taken cross join lateral generate_series(last_ended - ended + 1, last_ended) i
    where ($40::smallint[])[i] = ${endedStates.FAILED}`,
    "$1::smallint",
  )}),
  remembering as (
    insert into idempotency (tenant_key, key, fingerprint, event_ids, created_at)
    select tenant_key, ($30::text[])[i], substring($31::bytea from ($32::int[])[i] for ($33::int[])[i]),
      ($34::text[])[i], $35::bigint
    from taken cross join lateral generate_series(last_remembered - remembered + 1, last_remembered) i)
  select (select count(*) from m)::int as marked, array(select tenant_key from taken)::text as taken`;

export const acceptText = acceptTextOf({ hasKeys: false });
/** For events with ordering keys. */
export const acceptKeyedText = acceptTextOf({ hasKeys: true });

/** Idempotency keys seen before. Whether a key is new is checked with this first, and once more by its index. */
export const metText = `select tenant_key::float8 as "tenantKey", idempotency.key, fingerprint,
    event_ids as "eventIds", created_at::float8 as "createdAt"
  from idempotency join unnest($1::bigint[], $2::text[]) as given (of_tenant, given_key)
    on tenant_key = of_tenant and idempotency.key = given_key`;

/**
 * `left`: its tenant was left out, is not kept, or is refused. `met`: its idempotency key was seen before, and it is not a
 * repetition that is still remembered. Either way the request has to go alone.
 */
export type LaneAcceptance = AcceptedEvents | "left" | "met";

export interface AcceptLaneOptions extends Growth, PlanDeps {
  readonly pool: Pool;
  readonly kept: KeptTenants;
  moment(): Moment;
}

/** What idempotency keys were used for; null: for another request of the batch. */
type Met = Map<string, EarlierAnswer | null>;

interface Written {
  readonly marked: number;
  readonly taken: string;
}

/** What one request amounts to, before it is known whether its tenant is taken. */
type Planned =
  | (PlannedEvents & { readonly at: Moment; readonly idempotency: AcceptRequest["idempotency"] })
  | { readonly error: DomainError }
  | { readonly result: LaneAcceptance };

export function acceptLane({
  pool,
  kept,
  numbers,
  groups,
  incarnation,
  moment,
  mayGrow,
}: AcceptLaneOptions): Pick<LaneOptions<AcceptRequest, LaneAcceptance>, "write" | "recall"> {
  /** The plan of the batch in progress. */
  let planned: readonly Planned[] = [];

  /** @param met the key of the request is added to it */
  function plan(request: AcceptRequest, at: Moment, met: Met, lines: LockedLines): Planned {
    if (request.isAbandoned?.()) return { error: requestAbandoned() };
    const { tenantKey, idempotency } = request;
    const known = kept.get(tenantKey);
    if (!known) return { result: "left" };
    const name = idempotency && nameOf(tenantKey, idempotency.key);
    const earlier = name === undefined ? undefined : met.get(name);
    // The key is used by another request of this batch.
    if (earlier === null) return { result: "met" };
    if (name !== undefined && !earlier) met.set(name, null);
    const submission = {
      types: request.events.map(({ type }) => type),
      apiKey: known.apiKeys.get(request.apiKeyId) ?? null,
      fingerprint: idempotency?.fingerprint ?? null,
      earlier: earlier ?? null,
      mayGrow: mayGrow(),
    };
    const acceptance = accept({ ...known, gone: false, counters: noEvents }, submission, at);
    if (acceptance.kind === "repeated") return { result: repeatedAnswer(acceptance.eventIds) };
    if (earlier) return { result: "met" };
    if (acceptance.kind === "refused" || unusedIn(acceptance.records).size > 0) return { result: "left" };
    // A webhook has become ordered since the lines were locked.
    if (!lines.cover(linesOf(known.webhooks, request.events))) return { result: "left" };
    const deps = { numbers, groups, incarnation };
    return { ...planEvents(deps, known.tenant, request, acceptance.records, lines), at, idempotency };
  }

  async function metBefore(requests: readonly AcceptRequest[]): Promise<Met> {
    const keyed = requests.flatMap(({ tenantKey, idempotency }) => (idempotency ? { tenantKey, ...idempotency } : []));
    if (keyed.length === 0) return new Map();
    const found = await pool.read<
      { tenantKey: number; key: string; eventIds: string } & Omit<EarlierAnswer, "eventIds">
    >(metText, [arrayText(keyed.map(({ tenantKey }) => tenantKey)), arrayText(keyed.map(({ key }) => key))]);
    return new Map(
      found.map(({ tenantKey, key, eventIds, ...rest }) => [
        nameOf(tenantKey, key),
        { ...rest, eventIds: eventIds.split(" ") },
      ]),
    );
  }

  async function writeAll(
    requests: readonly AcceptRequest[],
    mark: MarkValues,
    met: Met,
  ): Promise<Written | undefined> {
    const at = moment();
    planned = requests.map((request) => plan(request, at, met, noLines));
    const [row] = await pool.write<Written>(acceptText, valuesOf(planned, kept, mark));
    return row;
  }

  /** Locks the lines of ordered webhooks that any of the events join. */
  const writeKeyed = (requests: readonly AcceptRequest[], mark: MarkValues, met: Met): Promise<Written | undefined> =>
    pool.transact(async (tx) => {
      const stood = requests.flatMap(({ tenantKey, events }) => linesOf(kept.get(tenantKey)?.webhooks ?? [], events));
      await lockLines(
        tx,
        stood.map(({ webhookKey }) => webhookKey),
      );
      const lines = await readLines(tx, stood);
      const at = moment();
      const tried = new Map(met);
      planned = requests.map((request) => plan(request, at, tried, lines));
      const [row] = await tx.run<Written>(acceptKeyedText, [...valuesOf(planned, kept, mark), ...keyValuesOf(planned)]);
      return row;
    });

  const outcomesOf = (taken: ReadonlySet<number>): JobOutcome<LaneAcceptance>[] =>
    planned.map((one) => {
      if (!("events" in one)) return one;
      return { result: taken.has(one.tenantKey) ? one.accepted : "left" };
    });

  return {
    async write(requests, mark) {
      const met = await metBefore(requests);
      const disabled = requests.filter(({ tenantKey }) => kept.get(tenantKey)?.webhooks.some((one) => !isEnabled(one)));
      if (disabled.length > 0) await groups.learn(disabled.map(({ tenantKey }) => tenantKey));
      const row = await (requests.some(hasKeys) ? writeKeyed(requests, mark, met) : writeAll(requests, mark, met));
      return row?.marked === 1 ? outcomesOf(new Set(numbersOf(row.taken))) : null;
    },

    async recall(_requests, _batch, isOurs) {
      const taken = new Set<number>();
      for (const one of planned) {
        if (!("events" in one) || taken.has(one.tenantKey)) continue;
        const first = one.events[0];
        if (!first) continue;
        const found = await pool.read("select 1 from event where seq = $1::bigint and tenant_key = $2::bigint", [
          first.seq,
          one.tenantKey,
        ]);
        if (found.length > 0) taken.add(one.tenantKey);
      }
      const outcomes = outcomesOf(taken);
      return isOurs ? outcomes : outcomes.map(disownedOutcome);
    },
  };
}

const disownedOutcome = (outcome: JobOutcome<LaneAcceptance>): JobOutcome<LaneAcceptance> =>
  "result" in outcome && typeof outcome.result !== "string" ? { result: disowned(outcome.result) } : outcome;

const hasKeys = ({ events }: AcceptRequest): boolean => events.some(({ orderingKey = null }) => orderingKey !== null);

const nameOf = (tenantKey: number, key: string) => `${tenantKey} ${key}`;

/** Webhooks that become used because of these records. */
export function unusedIn(recordsOfEach: readonly (readonly NewRecord[])[]): ReadonlySet<number> {
  const unused = new Set<number>();
  for (const records of new Set(recordsOfEach)) {
    for (const { webhook } of records) if (webhook && webhook.used !== true) unused.add(webhook.key);
  }
  return unused;
}

function eventsByTenant(planned: readonly Planned[]): ReadonlyMap<number, Extract<Planned, PlannedEvents>[]> {
  const byTenant = new Map<number, Extract<Planned, PlannedEvents>[]>();
  for (const one of planned) {
    if (!("events" in one)) continue;
    const others = byTenant.get(one.tenantKey);
    if (others) others.push(one);
    else byTenant.set(one.tenantKey, [one]);
  }
  return byTenant;
}

/** The further values of `acceptKeyedText`, in the same order as the others. */
function keyValuesOf(planned: readonly Planned[]): Value[] {
  const requests = [...eventsByTenant(planned).values()].flat();
  return [
    arrayText(requests.flatMap(({ events }) => events.map(({ orderingKey }) => orderingKey))),
    arrayText(requests.flatMap(({ pending }) => pending.map(({ orderHash }) => orderHash ?? 0))),
  ];
}

/** Requests tenant by tenant, each with the positions of its rows in the shared arrays. */
function valuesOf(planned: readonly Planned[], kept: KeptTenants, mark: MarkValues): Value[] {
  const byTenant = eventsByTenant(planned);
  const tenants: number[][] = [[], [], [], [], [], [], [], []];
  const skipped: number[] = [];
  const remembered: [counts: number[], last: number[]] = [[], []];
  const keys: string[] = [];
  const fingerprints: Uint8Array[] = [];
  const eventIds: string[] = [];
  let now = 0;
  const seqs: number[] = [];
  const tails: Uint8Array[] = [];
  const payloads: Uint8Array[] = [];
  const types: (string | null)[] = [];
  const traces: (TraceContext | null)[] = [];
  const pending: number[][] = [[], [], [], [], [], []];
  const ended: number[][] = [[], [], [], [], [], [], []];
  const reasons: (string | null)[] = [];
  const codes: (string | null)[] = [];
  const groups: DescribedGroup[] = [];
  for (const [tenantKey, those] of byTenant) {
    const before = [seqs.length, pending[0]?.length ?? 0, ended[0]?.length ?? 0] as const;
    let skippedOfTenant = 0;
    const keysBefore = keys.length;
    for (const one of those) {
      for (const { seq, tail, payload, type, trace } of one.events) {
        seqs.push(seq);
        tails.push(tail);
        payloads.push(payload);
        types.push(type);
        traces.push(trace);
      }
      for (const { eventSeq, key, webhookKey, isOwned, isHeldBack, nextAttemptAt, typeHash } of one.pending) {
        const whose = isHeldBack ? 2 : isOwned ? 1 : 0;
        pushEach(pending, [eventSeq, key, webhookKey, whose, nextAttemptAt, typeHash ?? 0]);
      }
      for (const { eventSeq, key, finishedAt, typeHash, state, webhookKey, failure, failureKey } of one.ended) {
        const rest = [typeHash ?? 0, endedStates[state], webhookKey ?? 0, failureKey ?? 0];
        pushEach(ended, [eventSeq, key, finishedAt, ...rest]);
        reasons.push(failure?.reason ?? null);
        codes.push(failure?.code ?? null);
      }
      groups.push(...one.groups);
      skippedOfTenant += one.ended.length - one.accepted.failed.length;
      if (one.idempotency) {
        keys.push(one.idempotency.key);
        fingerprints.push(one.idempotency.fingerprint);
        eventIds.push(one.accepted.eventIds.join(" "));
        now = one.at.now;
      }
    }
    pushEach(remembered, [keys.length - keysBefore, keys.length]);
    const after = [seqs.length, pending[0]?.length ?? 0, ended[0]?.length ?? 0] as const;
    skipped.push(skippedOfTenant);
    pushEach(tenants, [
      tenantKey,
      kept.get(tenantKey)?.version ?? 0,
      ...[after[0] - before[0], after[0], after[1] - before[1], after[1], after[2] - before[2], after[2]],
    ]);
  }
  const typesOfPending = pending.pop() ?? [];
  const [typesOfEnded = [], statesOfEnded = [], webhooksOfEnded = [], failuresOfEnded = []] = ended.splice(3);
  const packed = packBytes(payloads);
  const packedFingerprints = packBytes(fingerprints);
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
    ...ended.map(arrayText),
    arrayText(reasons),
    arrayText(codes),
    ...remembered.map(arrayText),
    arrayText(keys),
    packedFingerprints.bytes,
    packedFingerprints.starts,
    packedFingerprints.lengths,
    arrayText(eventIds),
    now,
    arrayText(types),
    arrayText(typesOfPending),
    arrayText(typesOfEnded),
    // Nearly always there are none.
    traces.some((trace) => trace !== null) ? arrayText(traces) : null,
    arrayText(statesOfEnded),
    arrayText(skipped),
    arrayText(webhooksOfEnded),
    arrayText(failuresOfEnded),
    ...groupValues(groups),
  ];
}

function pushEach(lists: readonly number[][], values: readonly number[]): void {
  for (let i = 0; i < lists.length; i++) lists[i]?.push(values[i] ?? 0);
}
