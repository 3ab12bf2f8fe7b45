import { type FailureSelection, selectFailures } from "../../domain/event.ts";
import { filterOf, type ReplayFilter } from "../../domain/replay.ts";
import { selectionOf } from "../../domain/replay-phase.ts";
import type { NewReplay } from "../store.ts";
import { typeHashOf } from "../type-hash.ts";
import type { Connection } from "./connection.ts";
import { stateNumber } from "./queries.ts";
import type { ReplayRow } from "./replay-rows.ts";
import { isStrandedFor } from "./stranded.ts";

/** How many records one transaction checks against a filter: 5 ms if they have to be looked up. */
const lookedAtOnce = 2_000;

/** A filter in the form that statements and `Replaying` use. */
interface Narrowing {
  readonly webhookKeys: number[] | null;
  readonly typeHash: number | null;
  readonly failure: FailureSelection | null;
}

/** Tenant, after, up to, how many, webhook keys, type hash, time by which it had failed, its code and status. */
type SelectionValues = [
  ...[number, number, number, number, string | null, number | null, number],
  ...[string | null, number | null],
];

export interface NextEvents {
  readonly seqs: readonly number[];
  /** The event up to which the search went. */
  readonly lookedTo: number;
  readonly narrowing: Narrowing;
}

const ever = Number.MAX_SAFE_INTEGER;

type Selecting = Omit<NewReplay, "id" | "label">;

/** Which events a replay takes: counting and queueing use the same conditions. */
export function createReplaySelection({ client, reader }: Connection) {
  const selectLastSeq = client.prepare<{ seq: number }, []>("select last_event_seq as seq from lane where id = 1");
  /** Sequence number of the last event on disk, of any account. */
  const lastSeq = () => selectLastSeq.get()?.seq ?? 0;
  const erasedToOf = client.prepare<{ seq: number | null }, [number]>(
    "select payloads_erased_to as seq from tenant where key = ?1",
  );
  // An id stands for its URL: the webhook may have been removed and registered again.
  const selectWebhookKeys = client.prepare<{ key: number }, [number, string]>(
    `select key from webhook
     where tenant_key = ?1 and url = coalesce((select url from webhook where tenant_key = ?1 and id = ?2), ?2)`,
  );
  const webhookKeysOf = (tenantKey: number, idOrUrl: string) =>
    selectWebhookKeys.all(tenantKey, idOrUrl).map(({ key }) => key);
  const nextIn = (index: string, condition: string) =>
    client.prepare<{ seq: number }, SelectionValues>(
      `select distinct event_seq as seq from delivery indexed by ${index}
       where tenant_key = ?1 and filed = 1 ${condition} and event_seq > ?2 and event_seq <= ?3
         and (?5 is null or webhook_key in (select value from json_each(?5)) or ?8 is not null and ${isStrandedFor("?5")})
         and (?6 is null or type_hash = ?6)
         and (?7 = ${ever} or state = 2 and finished_at <= ?7) and (?8 is null or error_code = ?8)
         and (?9 is null or status_code = ?9)
       order by event_seq limit ?4`,
    );
  const nextOfAll = nextIn("delivery_by_tenant", "");
  const nextOfFailed = nextIn("delivery_by_state", "and state = 2");
  const nextOfCode = nextIn("delivery_by_code", "and error_code = ?8 and error_code is not null");
  const seqBehind = <More extends string[] = []>(index: string, condition: string) =>
    client.prepare<{ seq: number }, [number, number, number, ...More]>(
      `select event_seq as seq from delivery indexed by ${index}
       where tenant_key = ?1 and ${condition} and event_seq > ?2 and event_seq <= ?3
       order by event_seq limit 1 offset ${lookedAtOnce}`,
    );
  const behindOfAll = seqBehind("delivery_by_tenant", "filed = 1");
  const behindOfFailed = seqBehind("delivery_by_state", "filed = 1 and state = 2");
  // Counts what is not filed, too: that is not in the index, and a bound need not be exact.
  const behindOfCode = seqBehind<[string]>("delivery_by_code", "error_code = ?4 and error_code is not null");

  /** Null when there can be no such records. */
  function narrowingOf(tenantKey: number, filter: ReplayFilter = {}): Narrowing | null {
    const { webhook, type } = filter;
    const failure = selectFailures(filter);
    if (failure === null) return null;
    return {
      webhookKeys: webhook === undefined ? null : webhookKeysOf(tenantKey, webhook),
      typeHash: type === undefined ? null : typeHashOf(type),
      failure: failure ?? null,
    };
  }

  /** The records whose events a bulk replay takes; null when there are none. */
  function filterOfRecords(tenantKey: number, replay: Selecting, last?: number) {
    const narrowing = narrowingOf(tenantKey, replay.filter);
    if (!narrowing) return null;
    const { webhookKeys, typeHash, failure } = narrowing;
    return {
      tenantKey,
      ...rangeOf(replay, last),
      ...(replay.kind === "failed" && { state: stateNumber.FAILED }),
      ...(webhookKeys && { webhookKeys }),
      ...(typeHash !== null && { typeHash }),
      ...(failure && { failure, withStranded: true }),
    };
  }

  /** The range of events to look at. */
  const rangeOf = ({ filter = {}, from, to }: Pick<NewReplay, "from" | "to" | "filter">, last = lastSeq()) =>
    selectionOf({ from, to }, filter, last);

  /** The event up to which to look in one transaction: the next match may be far away, and others wait meanwhile. */
  function endOfLook({ tenantKey, kind, cursorSeq, toSeq }: ReplayRow, narrowing: Narrowing): number {
    const { webhookKeys, typeHash, failure } = narrowing;
    const range = [tenantKey, cursorSeq, toSeq] as const;
    if (failure) return behindOfCode.get(...range, failure.code)?.seq ?? toSeq;
    if (kind === "failed") return behindOfFailed.get(...range)?.seq ?? toSeq;
    const isWhole = webhookKeys === null && typeHash === null;
    return isWhole ? toSeq : (behindOfAll.get(...range)?.seq ?? toSeq);
  }

  return {
    lastSeq,

    rangeOf,

    narrowingOf,

    /** How many events a bulk replay would take now. */
    async count(tenantKey: number, replay: Selecting, last?: number): Promise<number> {
      const filter = filterOfRecords(tenantKey, replay, last);
      return filter ? reader.run("countEvents", filter) : 0;
    },

    /** How many of those events no longer have a payload: only those old enough for that are looked up. */
    async countErased(tenantKey: number, replay: Selecting): Promise<number> {
      const erasedTo = erasedToOf.get(tenantKey)?.seq ?? null;
      const filter = erasedTo === null ? null : filterOfRecords(tenantKey, replay);
      if (!filter || erasedTo === null || erasedTo < filter.fromSeq) return 0;
      return reader.run("countErased", { ...filter, toSeq: Math.min(filter.toSeq, erasedTo) });
    },

    /** Whether a filter takes an event. */
    takes(tenantKey: number, seq: number, filter: ReplayFilter = {}): boolean {
      const { fromSeq, toSeq } = selectionOf({}, filter, seq);
      const narrowing = narrowingOf(tenantKey, filter);
      if (!narrowing || seq < fromSeq || seq > toSeq) return false;
      return nextOfAll.get(...valuesOf(tenantKey, seq - 1, seq, 1, ever, narrowing)) !== null;
    },

    /** The next events of a bulk replay; null when it takes none. */
    next(replay: ReplayRow, limit: number): NextEvents | null {
      const { tenantKey, kind, cursorSeq, createdAt, filter } = replay;
      const narrowing = narrowingOf(tenantKey, filterOf(filter) ?? {});
      if (!narrowing) return null;
      const { failure } = narrowing;
      const isOfFailed = kind === "failed";
      const lookedTo = endOfLook(replay, narrowing);
      const next = failure ? nextOfCode : isOfFailed ? nextOfFailed : nextOfAll;
      const failedBy = isOfFailed ? createdAt : ever;
      const found = next.all(...valuesOf(tenantKey, cursorSeq, lookedTo, limit, failedBy, narrowing));
      return { seqs: found.map(({ seq }) => seq), lookedTo, narrowing };
    },
  };
}

const valuesOf = (
  tenantKey: number,
  afterSeq: number,
  toSeq: number,
  limit: number,
  failedBy: number,
  { webhookKeys, typeHash, failure }: Narrowing,
): SelectionValues => [
  tenantKey,
  afterSeq,
  toSeq,
  limit,
  webhookKeys === null ? null : JSON.stringify(webhookKeys),
  typeHash,
  failedBy,
  failure?.code ?? null,
  failure?.status ?? null,
];
