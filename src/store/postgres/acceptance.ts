import { and, eq } from "drizzle-orm";
import { accept, acceptOwn, type EarlierAnswer, type Submission } from "../../domain/acceptance.ts";
import type { ApiKey } from "../../domain/credentials.ts";
import { requestAbandoned } from "../../domain/errors.ts";
import { movesOf } from "../../domain/failure-groups.ts";
import { quotaOf } from "../../domain/limits.ts";
import { utcMonth } from "../../domain/tenant-state.ts";
import { isEnabled } from "../../domain/webhook.ts";
import { ingestedAtMs } from "../../lib/id.ts";
import { createKeyedLock } from "../../lib/keyed-lock.ts";
import type { Growth } from "../growth.ts";
import type { AcceptedEvents, AcceptRequest, EventVerbs } from "../store.ts";
import { type LaneAcceptance, unusedIn } from "./accept-lane.ts";
import type { Connection } from "./connection.ts";
import { endedStates } from "./ended-states.ts";
import { disowned, type PlannedEvents, planEvents, repeatedAnswer, tailBytes } from "./event-rows.ts";
import { heldBack } from "./event-schema.ts";
import { describeGroup, FailureTally } from "./failure-counts.ts";
import { OutcomeUnknown, sqlStateOf } from "./faults.ts";
import { count, hold } from "./held-tenants.ts";
import type { HotPaths } from "./hot-paths.ts";
import { linesOf, lockLines, readLines } from "./lines.ts";
import type { Node } from "./nodes.ts";
import { beOwner } from "./ownership.ts";
import { arrayText, packBytes } from "./parameters.ts";
import type { Transaction } from "./pool.ts";
import { acceptLaneOf, type LaneQuota, lockQuota, spend, spentOf } from "./quota.ts";
import * as t from "./schema.ts";
import { noteUsed } from "./webhook-use.ts";
import { overtake, uniqueViolation, type WriteTransaction } from "./writes.ts";

/** What was accepted alone, and the node that has become the owner of its deliveries. */
interface AcceptedAlone {
  readonly accepted: AcceptedEvents;
  readonly incarnation: number;
}

/** How often a request waits for another that finds out why their tenant was left out, before it goes alone itself. */
const mostWaits = 2;

/**
 * A request goes through the lane, with all the others. If it is left out there, it goes alone, with its tenant locked; this
 * refreshes what the node keeps of the tenant and what its lane may spend, so the tenant's other requests wait for it and try
 * again.
 */
export function acceptanceVerbs(
  { writes, numbers, node, isNode }: Connection,
  { mayGrow }: Growth,
  { lanes, kept, groups, underWay, holdings }: HotPaths,
): Pick<EventVerbs, "acceptEvents" | "acceptOwnEvent"> {
  const oneByOne = createKeyedLock<number>();
  /** By tenant. These promises never reject. */
  const renewals = new Map<number, Promise<unknown>>();

  /** Handles one request with its tenant locked, so that every rule can be checked. */
  async function acceptAlone(tx: WriteTransaction, request: AcceptRequest): Promise<AcceptedAlone> {
    const { tenantKey, apiKeyId, events, idempotency, isAbandoned } = request;
    const owner = node();
    const { incarnation } = owner;
    const held = await hold(tx, tenantKey);
    const stood = linesOf(held.webhooks, events);
    await lockLines(
      tx,
      stood.map(({ webhookKey }) => webhookKey),
    );
    const lines = await readLines(tx, stood);
    const lanes = await lockQuota(tx, tenantKey);
    const submission: Submission = {
      types: events.map(({ type }) => type),
      apiKey: await apiKeyOf(tx, tenantKey, apiKeyId),
      fingerprint: idempotency?.fingerprint ?? null,
      earlier: idempotency ? await remembered(tx, tenantKey, idempotency.key) : null,
      mayGrow: mayGrow(),
    };
    if (isAbandoned?.()) throw requestAbandoned();
    const { tenant, counters } = held;
    const acceptance = accept({ ...held, counters: { ...counters, ...spentOf(lanes) } }, submission, tx);
    if (acceptance.kind === "refused") throw acceptance.error;
    if (acceptance.kind === "repeated") {
      return { accepted: repeatedAnswer(acceptance.eventIds), incarnation };
    }

    if (!held.webhooks.every(isEnabled)) await groups.learn([tenantKey]);
    const planned = planEvents({ numbers, groups, incarnation }, tenant, request, acceptance.records, lines);
    if (planned.accepted.deliveries.length > 0) await beOwner(tx, owner);
    await insertEvents(tx, planned);
    await insertRecords(tx, planned, owner);
    await writeUsage(tx, planned, lanes, owner, quotaOf(tenant));
    const unused = unusedIn(acceptance.records);
    if (unused.size > 0) {
      await tx.run("update webhook set used = true where tenant_key = $1::bigint and key = any($2::bigint[])", [
        tenantKey,
        arrayText([...unused]),
      ]);
      await overtake(tx, new Set([tenantKey]));
    }
    if (idempotency) await remember(tx, tenantKey, idempotency, planned.accepted.eventIds);
    return { accepted: planned.accepted, incarnation };
  }

  /** Rare, so it counts where no lane does. */
  const acceptOwnEvent: EventVerbs["acceptOwnEvent"] = ({ tenantKey, payload, ...event }) =>
    writes.submit(async (tx) => {
      const owner = node();
      const held = await hold(tx, tenantKey);
      const records = acceptOwn(held, event, mayGrow(), tx);
      if (records.length === 0) return null;
      const given = { events: [{ payload, type: event.type }] };
      // It has no ordering key.
      const lines = await readLines(tx, []);
      const planned = planEvents(
        { numbers, groups, incarnation: owner.incarnation },
        held.tenant,
        given,
        [records],
        lines,
      );
      await insertEvents(tx, planned);
      await insertRecords(tx, planned, owner);
      await count(tx, owner, tenantKey, { events: 1, pending: records.length });
      await noteUsed(tx, held, new Set(records.map(({ webhook }) => webhook.key)));
      return planned.accepted;
    });

  async function byLane(request: AcceptRequest): Promise<LaneAcceptance> {
    const { tenantKey } = request;
    const known = kept.get(tenantKey) ?? (await kept.read(tenantKey));
    if (!known) return "left";
    try {
      const { accepted, incarnation } = await lanes.accept(request);
      return typeof accepted === "string" ? accepted : owned(accepted, incarnation);
    } catch (error) {
      if (sqlStateOf(error) === uniqueViolation) return "met";
      throw error;
    }
  }

  /** One request per tenant at a time; otherwise they would wait for each other, each holding a connection. */
  const alone = (request: AcceptRequest): Promise<AcceptedEvents> =>
    oneByOne.run(request.tenantKey, async () => {
      try {
        const { accepted, incarnation } = await underWay.run(() => writes.submit((tx) => acceptAlone(tx, request)));
        return owned(accepted, incarnation);
      } catch (error) {
        // The event may be stored, with deliveries that nobody here knows of.
        if (error instanceof OutcomeUnknown) holdings.doubt(request.tenantKey);
        throw error;
      }
    });

  /** An answer may come late, as after a pause of the process, or after a lane had to find out its outcome. */
  function owned(accepted: AcceptedEvents, incarnation: number): AcceptedEvents {
    if (!isNode(incarnation)) return disowned(accepted);
    holdings.take(accepted.deliveries);
    return accepted;
  }

  function renew(request: AcceptRequest): Promise<AcceptedEvents> {
    const { tenantKey } = request;
    const accepted = alone(request).finally(() => kept.forget(tenantKey));
    const renewal = accepted.then(
      () => {},
      () => {},
    );
    renewals.set(tenantKey, renewal);
    void renewal.then(() => {
      if (renewals.get(tenantKey) === renewal) renewals.delete(tenantKey);
    });
    return accepted;
  }

  return {
    acceptOwnEvent,

    async acceptEvents(request) {
      for (let waits = 0; ; waits++) {
        const accepted = await byLane(request);
        if (accepted === "met") return alone(request);
        if (accepted !== "left") return accepted;
        const renewal = renewals.get(request.tenantKey);
        if (!renewal || waits === mostWaits) return renew(request);
        await renewal;
      }
    },
  };
}

async function apiKeyOf(tx: Transaction, tenantKey: number, id: string): Promise<Pick<ApiKey, "expiresAt"> | null> {
  const [found] = await tx.db
    .select({ expiresAt: t.apiKey.expiresAt })
    .from(t.apiKey)
    .where(and(eq(t.apiKey.tenantKey, tenantKey), eq(t.apiKey.id, id)));
  return found ?? null;
}

async function remembered({ db }: Transaction, tenantKey: number, key: string): Promise<EarlierAnswer | null> {
  const [found] = await db
    .select()
    .from(t.idempotency)
    .where(and(eq(t.idempotency.tenantKey, tenantKey), eq(t.idempotency.key, key)));
  return found ? { ...found, eventIds: found.eventIds.split(" ") } : null;
}

async function remember(
  { db, now }: WriteTransaction,
  tenantKey: number,
  { key, fingerprint }: NonNullable<AcceptRequest["idempotency"]>,
  eventIds: readonly string[],
): Promise<void> {
  const row = { fingerprint, eventIds: eventIds.join(" "), createdAt: now };
  await db
    .insert(t.idempotency)
    .values({ tenantKey, key, ...row })
    .onConflictDoUpdate({ target: [t.idempotency.tenantKey, t.idempotency.key], set: row });
}

async function insertEvents({ run }: Transaction, { tenantKey, events }: PlannedEvents): Promise<void> {
  const payloads = packBytes(events.map(({ payload }) => payload));
  await run(
    `insert into event (seq, tenant_key, id_tail, payload, type, trace, ordering_key)
     select seq, $1::bigint, substring($3::bytea from (i::int - 1) * ${tailBytes} + 1 for ${tailBytes}),
       substring($4::bytea from start for length), type, trace, ordering_key
     from unnest($2::bigint[], $5::int[], $6::int[], $7::text[], $8::text[], $9::text[]) with ordinality
       as added (seq, start, length, type, trace, ordering_key, i)`,
    [
      tenantKey,
      arrayText(events.map(({ seq }) => seq)),
      packBytes(events.map(({ tail }) => tail)).bytes,
      payloads.bytes,
      payloads.starts,
      payloads.lengths,
      arrayText(events.map(({ type }) => type)),
      arrayText(events.map(({ trace }) => trace)),
      arrayText(events.map(({ orderingKey }) => orderingKey)),
    ],
  );
}

async function insertRecords(tx: Transaction, planned: PlannedEvents, owner: Node): Promise<void> {
  const { run } = tx;
  const { tenantKey, pending, ended, groups } = planned;
  if (pending.length > 0) {
    await run(
      `insert into pending (tenant_key, event_seq, key, webhook_key, run, attempts_in_run, attempts, owner, next_attempt_at,
         type_hash, order_hash)
       select $1::bigint, event_seq, key, webhook_key, 1, 0, 0, owner, next_attempt_at, type_hash, order_hash
       from unnest($2::bigint[], $3::bigint[], $4::bigint[], $5::int[], $6::bigint[], $7::bigint[], $8::bigint[])
         as added (event_seq, key, webhook_key, owner, next_attempt_at, type_hash, order_hash)`,
      [
        tenantKey,
        arrayText(pending.map(({ eventSeq }) => eventSeq)),
        arrayText(pending.map(({ key }) => key)),
        arrayText(pending.map(({ webhookKey }) => webhookKey)),
        arrayText(
          pending.map(({ isOwned, isHeldBack }) => (isHeldBack ? heldBack : isOwned ? owner.incarnation : null)),
        ),
        arrayText(pending.map(({ nextAttemptAt }) => nextAttemptAt)),
        arrayText(pending.map(({ typeHash }) => typeHash)),
        arrayText(pending.map(({ orderHash }) => orderHash)),
      ],
    );
  }
  if (ended.length > 0) {
    await run(
      `insert into delivery (tenant_key, event_seq, key, webhook_key, run, attempts_in_run, attempts, state, finished_at,
         error_reason, error_code, type_hash, failure_key)
       select $1::bigint, event_seq, key, webhook_key, 1, 0, 0, state, finished_at, reason, code, type_hash, failure_key
       from unnest($2::bigint[], $3::bigint[], $4::smallint[], $5::bigint[], $6::text[], $7::text[], $8::bigint[],
           $9::bigint[], $10::bigint[])
         as added (event_seq, key, state, finished_at, reason, code, type_hash, webhook_key, failure_key)`,
      [
        tenantKey,
        arrayText(ended.map(({ eventSeq }) => eventSeq)),
        arrayText(ended.map(({ key }) => key)),
        arrayText(ended.map(({ state }) => endedStates[state])),
        arrayText(ended.map(({ finishedAt }) => finishedAt)),
        arrayText(ended.map(({ failure }) => failure?.reason ?? null)),
        arrayText(ended.map(({ failure }) => failure?.code ?? null)),
        arrayText(ended.map(({ typeHash }) => typeHash)),
        arrayText(ended.map(({ webhookKey }) => webhookKey)),
        arrayText(ended.map(({ failureKey }) => failureKey)),
      ],
    );
    const failed = ended.filter(({ state }) => state === "FAILED");
    for (const group of groups) await describeGroup(tx, group);
    const tally = new FailureTally();
    for (const { eventSeq, failureKey, finishedAt } of failed) {
      tally.add(eventSeq, movesOf(null, { state: "FAILED", failureKey }), finishedAt);
    }
    await tally.write(tx, owner, tenantKey);
  }
}

/** Counts the events in the row of the lane that this node accepts through. */
async function writeUsage(
  { run }: Transaction,
  { tenantKey, events, pending, ended, accepted }: PlannedEvents,
  lanes: readonly LaneQuota[],
  node: Node,
  quota: number,
): Promise<void> {
  const slot = acceptLaneOf(node);
  const lastMonth = utcMonth(ingestedAtMs(events.at(-1)?.seq ?? 0));
  const month = Math.max(spentOf(lanes).month, lastMonth);
  for (const lane of spend(lanes, { slot, events: events.length, month, quota })) {
    const isOwn = lane.slot === slot;
    await run(
      `insert into usage as u (tenant_key, slot, month, used, granted, events, pending, delivered, failed, skipped)
       values ($1::bigint, $2::smallint, $3::int, $4::bigint, $5::bigint, $6::bigint, $7::bigint, 0, $8::bigint, $9::bigint)
       on conflict (tenant_key, slot) do update set month = excluded.month, used = excluded.used,
         granted = excluded.granted, events = u.events + excluded.events, pending = u.pending + excluded.pending,
         failed = u.failed + excluded.failed, skipped = u.skipped + excluded.skipped`,
      [
        tenantKey,
        lane.slot,
        lane.month,
        lane.used,
        lane.granted,
        isOwn ? events.length : 0,
        isOwn ? pending.length : 0,
        isOwn ? accepted.failed.length : 0,
        isOwn ? ended.length - accepted.failed.length : 0,
      ],
    );
  }
}
