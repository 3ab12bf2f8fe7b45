import { filteredCountLimit, isFiltered, selectFailures, totalOf } from "../../domain/event.ts";
import { payloadErased } from "../../domain/retention.ts";
import { type Tenant, tierInForce } from "../../domain/tenant.ts";
import { recordsIn } from "../../domain/tenant-state.ts";
import type { Clock } from "../../lib/clock.ts";
import { encodeEventId, firstSeqAt, parseEventId } from "../../lib/id.ts";
import { searchRecords } from "../search.ts";
import { completeList } from "../steps.ts";
import type { EventVerbs, PageQuery, PreviewedDelivery, RecordPage } from "../store.ts";
import { typeHashOf } from "../type-hash.ts";
import type { Connection } from "./connection.ts";
import { countersOf } from "./held-tenants.ts";
import { labelJoins, labelOf, wholeLabel } from "./labels.ts";
import type { Transaction } from "./pool.ts";
import { attemptsAt, recordsAt } from "./record-rows.ts";
import { countUpTo, pagePlaces, type RecordFilter, type RecordPlace, webhookKeys } from "./record-walks.ts";
import { searchSlice } from "./search-slice.ts";

/** How far from the newest row a page may be to be found within a few ms. Others are slow reads. */
const shallowRows = 2_000;

/** The rest of the id tells which of the events with this number it is. */
export const ownersText = `select event.tenant_key::float8 as "tenantKey", id_tail as "idTail" from event
  join tenant on tenant.key = event.tenant_key where seq = $1::bigint and deleted_at is null`;

/** Returns at least one row, without a key, if the tenant has the event. */
export const recordKeysText = `select id_tail as "idTail", r.key::float8 as key from event
  left join lateral (
    select key from pending where tenant_key = $1::bigint and event_seq = $2::bigint
    union all select key from delivery where tenant_key = $1::bigint and event_seq = $2::bigint
  ) r on true
  where seq = $2::bigint and event.tenant_key = $1::bigint order by r.key`;

/** Like `recordKeysText`. At most a hundred are kept per record. */
export const attemptKeysText = `select id_tail as "idTail", attempt.key::float8 as key from event
  left join attempt on attempt.event_seq = $2::bigint and attempt.tenant_key = $1::bigint
  where seq = $2::bigint and event.tenant_key = $1::bigint order by started_at, attempt.key`;

const previewedColumns = "key, webhook_key, run, attempts, replay_key";

export const previewText = `select id_tail as "idTail", r.key::float8 as "deliveryKey", tenant.id as "tenantId",
    enforced_tier as "enforcedTier", url, event.type, payload, trace, run, attempts, ${wholeLabel} as label
  from (
    select ${previewedColumns} from pending where tenant_key = $1::bigint and event_seq = $2::bigint
    union all select ${previewedColumns} from delivery where tenant_key = $1::bigint and event_seq = $2::bigint
    order by key desc limit 1
  ) r
  join event on seq = $2::bigint and event.tenant_key = $1::bigint
  join tenant on tenant.key = $1::bigint
  left join webhook on webhook.tenant_key = $1::bigint and webhook.key = r.webhook_key
  ${labelJoins("$1::bigint", "r.replay_key")}`;

interface KeyRow {
  readonly idTail: Uint8Array;
  readonly key: number | null;
}

interface PreviewRow
  extends Pick<PreviewedDelivery, "deliveryKey" | "tenantId" | "type" | "payload" | "trace" | "run" | "attempts"> {
  readonly idTail: Uint8Array;
  readonly enforcedTier: Tenant["enforcedTier"];
  readonly url: string | null;
  readonly label: string | null;
}

/** Reading events; `acceptance.ts` takes them in. */
export function eventVerbs({
  pool,
  slowReads,
  clock,
}: Connection): Omit<EventVerbs, "acceptEvents" | "acceptOwnEvent"> {
  /** The keys of what belongs to an event; null when the tenant has no such event. */
  async function keysOf(text: string, tenantKey: number, eventId: string) {
    const id = parseEventId(eventId);
    if (!id) return null;
    const rows = await pool.read<KeyRow>(text, [tenantKey, id.seq]);
    if (!rows[0] || encodeEventId(id.seq, rows[0].idTail) !== eventId) return null;
    return { eventSeq: id.seq, keys: rows.flatMap(({ key }) => (key === null ? [] : [key])) };
  }

  function findPage(query: PageQuery): Promise<FoundPage> {
    const find = () => pool.snapshot((tx) => pageIn(tx, query, clock));
    if (!isFiltered(query) && query.text === undefined && (query.page + 1) * query.size <= shallowRows) return find();
    return slowReads.run(query.tenantKey, find, query.isAbandoned);
  }

  return {
    async page(query) {
      const { tenantKey, state, payload = "whole" } = query;
      const { places, ...counts } = await findPage(query);
      const errorCode = selectFailures(query)?.code;
      return { records: recordsAt(pool, places, { tenantKey, state, errorCode, payload }), ...counts };
    },

    records: (tenantKey, eventId) =>
      completeList(async () => {
        const found = await keysOf(recordKeysText, tenantKey, eventId);
        if (!found || found.keys.length === 0) return null;
        const places = found.keys.map((key) => ({ eventSeq: found.eventSeq, key }));
        return { entries: recordsAt(pool, places, { tenantKey, payload: "whole" }), length: places.length };
      }),

    async eventOwner(eventId) {
      const id = parseEventId(eventId);
      if (!id) return null;
      const owners = await pool.read<{ tenantKey: number; idTail: Uint8Array }>(ownersText, [id.seq]);
      return owners.find(({ idTail }) => encodeEventId(id.seq, idTail) === eventId)?.tenantKey ?? null;
    },

    async attempts(tenantKey, eventId, { offset, limit }) {
      const found = await keysOf(attemptKeysText, tenantKey, eventId);
      if (!found) return null;
      const { keys, eventSeq } = found;
      return {
        attempts: attemptsAt(pool, keys.slice(offset, offset + limit), { tenantKey, eventSeq }),
        total: keys.length,
      };
    },

    async previewDelivery(tenantKey, eventId) {
      const id = parseEventId(eventId);
      if (!id) return null;
      const [newest] = await pool.read<PreviewRow>(previewText, [tenantKey, id.seq]);
      if (!newest || encodeEventId(id.seq, newest.idTail) !== eventId) return null;
      if (newest.payload.length === 0) throw payloadErased();
      const { idTail: _, enforcedTier, url, label, ...rest } = newest;
      return {
        ...rest,
        tenantKey,
        tier: tierInForce({ enforcedTier }),
        webhookKey: 0,
        url: url ?? "",
        eventSeq: id.seq,
        eventId,
        attemptsInRun: 0,
        orderHash: null,
        replayKey: null,
        replayGroupId: label === null ? null : labelOf(label),
      };
    },
  };
}

type FoundPage = Omit<RecordPage, "records"> & { readonly places: readonly RecordPlace[] };

async function replayKeyOf({ run }: Pick<Transaction, "run">, tenantKey: number, id: string): Promise<number | null> {
  const text = "select key::float8 as key from replay where tenant_key = $1::bigint and id = $2";
  const [found] = await run<{ key: number }>(text, [tenantKey, id]);
  return found?.key ?? null;
}

/** The places of a page and its totals, read in one snapshot, so that a count covers the records that can be paged to. */
async function pageIn(tx: Transaction, query: PageQuery, clock: Pick<Clock, "monotonicMs">): Promise<FoundPage> {
  const { tenantKey, state, webhookId, type, replayId, from, to, text, size: limit } = query;
  const offset = query.page * limit;
  const failure = selectFailures(query);
  const replayKey = replayId === undefined ? undefined : await replayKeyOf(tx, tenantKey, replayId);
  if (failure === null || replayKey === null) {
    return { places: [], ...totalOf(0), ...(text !== undefined && { searchedTo: null }) };
  }
  const filter: RecordFilter = {
    tenantKey,
    state,
    webhookKeys: webhookId === undefined ? undefined : await webhookKeys(tx, tenantKey, webhookId),
    typeHash: type === undefined ? undefined : typeHashOf(type),
    failure,
    replayKey,
    fromSeq: from === undefined ? undefined : firstSeqAt(from),
    toSeq: to === undefined ? undefined : firstSeqAt(to + 1) - 1,
  };
  if (text !== undefined) {
    return searchRecords({
      ...{ text, offset, limit, range: filter, clock },
      look: (needle, range, records) => searchSlice(tx, filter, needle, range, records),
    });
  }
  if (isFiltered(query)) {
    const counts = totalOf(await countUpTo(tx, filter, filteredCountLimit + 1));
    return { places: await pagePlaces(tx, filter, { offset, limit }), ...counts };
  }
  const counters = await countersOf(tx, tenantKey);
  const total = recordsIn(counters, state);
  const counts = { total, totalIsExact: true, ...(state === undefined && { totalEvents: counters.events }) };
  // A page past the last one is empty, whatever it would cost to walk there.
  if (offset >= total) return { places: [], ...counts };
  return { places: await pagePlaces(tx, filter, { offset, limit, total }), ...counts };
}
