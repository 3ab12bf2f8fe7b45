import { type FailureSelection, selectFailures } from "../../domain/event.ts";
import { filterOf, type ReplayFilter } from "../../domain/replay.ts";
import { selectionOf } from "../../domain/replay-phase.ts";
import type { NewReplay } from "../store.ts";
import { typeHashOf } from "../type-hash.ts";
import type { Connection } from "./connection.ts";
import { stateNumber } from "./queries.ts";
import type { ReplayRow } from "./replay-rows.ts";

/** Of how many records one transaction asks whether a filter takes them: 5 ms where they have to be looked up. */
const lookedAtOnce = 2_000;

/** A filter as statements have it, and `Replaying`. */
interface Narrowing {
  readonly webhookKeys: number[] | null;
  readonly typeHash: number | null;
  readonly failure: FailureSelection | null;
}

/** Tenant, after, up to, how many, keys of webhooks, hash of a type, when it had failed, its code and status. */
type SelectionValues = [
  ...[number, number, number, number, string | null, number | null, number],
  ...[string | null, number | null],
];

export interface NextEvents {
  readonly seqs: readonly number[];
  /** Up to which event was looked. */
  readonly lookedTo: number;
  readonly narrowing: Narrowing;
}

const ever = Number.MAX_SAFE_INTEGER;

type Selecting = Omit<NewReplay, "id" | "label">;

/** Which events a replay takes: as it is counted, and as it is queued, by the same conditions. */
export function createReplaySelection({ client, queries, reader }: Connection) {
  const selectLastSeq = client.prepare<{ seq: number }, []>("select last_event_seq as seq from lane where id = 1");
  /** Of the last event that is on disk, of any account. */
  const lastSeq = () => selectLastSeq.get()?.seq ?? 0;
  const erasedToOf = client.prepare<{ seq: number | null }, [number]>(
    "select payloads_erased_to as seq from tenant where key = ?1",
  );
  const nextIn = (index: string, condition: string) =>
    client.prepare<{ seq: number }, SelectionValues>(
      `select distinct event_seq as seq from delivery indexed by ${index}
       where tenant_key = ?1 and filed = 1 ${condition} and event_seq > ?2 and event_seq <= ?3
         and (?5 is null or webhook_key in (select value from json_each(?5))) and (?6 is null or type_hash = ?6)
         and (?7 = ${ever} or state = 2 and finished_at <= ?7) and (?8 is null or error_code = ?8)
         and (?9 is null or status_code = ?9)
       order by event_seq limit ?4`,
    );
  const nextOfAll = nextIn("delivery_by_tenant", "");
  const nextOfFailed = nextIn("delivery_by_state", "and state = 2");
  const nextOfCode = nextIn("delivery_by_code", "and error_code = ?8 and error_code is not null");
  const seqBehind = (which: string) =>
    client.prepare<{ seq: number }, [number, number, number]>(
      `select event_seq as seq from delivery
       where tenant_key = ?1 and filed = 1 ${which} and event_seq > ?2 and event_seq <= ?3 order by event_seq limit 1 offset ${lookedAtOnce}`,
    );
  const behind = { ofAll: seqBehind(""), ofFailed: seqBehind("and state = 2") };

  /** Null: there are no such records. */
  function narrowingOf(tenantKey: number, filter: ReplayFilter = {}): Narrowing | null {
    const { webhook, type } = filter;
    const failure = selectFailures(filter);
    if (failure === null) return null;
    return {
      webhookKeys: webhook === undefined ? null : queries.webhookKeys({ tenantKey, idOrUrl: webhook }),
      typeHash: type === undefined ? null : typeHashOf(type),
      failure: failure ?? null,
    };
  }

  /** The records whose events a bulk replay takes; null: there are none. */
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
      ...(failure && { failure }),
    };
  }

  /** The events that are looked at. */
  const rangeOf = ({ filter = {}, from, to }: Pick<NewReplay, "from" | "to" | "filter">, last = lastSeq()) =>
    selectionOf({ from, to }, filter, last);

  return {
    lastSeq,

    rangeOf,

    narrowingOf,

    /** How many events a bulk replay would take now. */
    async count(tenantKey: number, replay: Selecting, last?: number): Promise<number> {
      const filter = filterOfRecords(tenantKey, replay, last);
      return filter ? reader.run("countEvents", filter) : 0;
    },

    /** How many of them have no payload any more: only those are looked up that are old enough. */
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

    /** The next events of a bulk replay; null: it takes none. */
    next({ tenantKey, kind, cursorSeq, toSeq, createdAt, filter }: ReplayRow, limit: number): NextEvents | null {
      const narrowing = narrowingOf(tenantKey, filterOf(filter) ?? {});
      if (!narrowing) return null;
      const { webhookKeys, typeHash, failure } = narrowing;
      const isOfFailed = kind === "failed";
      const isNarrow = !failure && (webhookKeys !== null || typeHash !== null);
      const end = isOfFailed ? behind.ofFailed : behind.ofAll;
      // The next one that a filter takes may be far away, and others wait for the transaction. Those of a code lie together.
      const lookedTo = (isNarrow && end.get(tenantKey, cursorSeq, toSeq)?.seq) || toSeq;
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
