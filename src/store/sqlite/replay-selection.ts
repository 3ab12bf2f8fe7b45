import { filterOf, type ReplayFilter } from "../../domain/replay.ts";
import { selectionOf } from "../../domain/replay-phase.ts";
import type { NewReplay } from "../store.ts";
import { typeHashOf } from "../type-hash.ts";
import type { Connection } from "./connection.ts";
import { stateNumber } from "./queries.ts";
import type { ReplayRow } from "./replay-rows.ts";

/** Of how many records one transaction asks whether a filter takes them: 5 ms where they have to be looked up. */
const lookedAtOnce = 2_000;

/** A filter as statements have it. */
interface Narrowing {
  readonly webhookKeys: number[] | null;
  readonly typeHash: number | null;
}

/** Tenant, after, up to, how many, keys of webhooks, hash of a type. */
type SelectionValues = [number, number, number, number, string | null, number | null];

export interface NextEvents {
  readonly seqs: readonly number[];
  /** Up to which event was looked. */
  readonly lookedTo: number;
  /** As `Replaying` has them. */
  readonly webhookKeys: readonly number[] | null;
}

/** Which events a replay takes: as it is counted, and as it is queued, by the same conditions. */
export function createReplaySelection({ client, queries, reader }: Connection) {
  const lastSeq = client.prepare<{ seq: number }, []>("select last_event_seq as seq from lane where id = 1");
  const isNarrowed = `(?5 is null or webhook_key in (select value from json_each(?5))) and (?6 is null or type_hash = ?6)`;
  const eventsAfter = client.prepare<{ seq: number }, SelectionValues>(
    `select distinct event_seq as seq from delivery
     where tenant_key = ?1 and event_seq > ?2 and event_seq <= ?3 and ${isNarrowed} order by event_seq limit ?4`,
  );
  const failedAfter = client.prepare<{ seq: number }, [...SelectionValues, number]>(
    `select distinct event_seq as seq from delivery
     where tenant_key = ?1 and state = 2 and event_seq > ?2 and event_seq <= ?3 and finished_at <= ?7 and ${isNarrowed}
     order by event_seq limit ?4`,
  );
  const seqBehind = (which: string) =>
    client.prepare<{ seq: number }, [number, number, number]>(
      `select event_seq as seq from delivery
       where tenant_key = ?1 ${which} and event_seq > ?2 and event_seq <= ?3 order by event_seq limit 1 offset ${lookedAtOnce}`,
    );
  const behind = { ofAll: seqBehind(""), ofFailed: seqBehind("and state = 2") };

  const webhookKeys = (tenantKey: number, { webhook }: ReplayFilter = {}) =>
    webhook === undefined ? null : queries.webhookKeys({ tenantKey, idOrUrl: webhook });

  const narrowingOf = (tenantKey: number, filter: ReplayFilter): Narrowing => ({
    webhookKeys: webhookKeys(tenantKey, filter),
    typeHash: filter.type === undefined ? null : typeHashOf(filter.type),
  });

  /** The events that are looked at. */
  const rangeOf = ({ filter = {}, from, to }: Pick<NewReplay, "from" | "to" | "filter">) =>
    selectionOf({ from, to }, filter, lastSeq.get()?.seq ?? 0);

  return {
    rangeOf,

    webhookKeys,

    /** How many events a bulk replay would take now. */
    count(tenantKey: number, replay: Omit<NewReplay, "id" | "label">): Promise<number> {
      const { webhookKeys, typeHash } = narrowingOf(tenantKey, replay.filter ?? {});
      return reader.run("countEvents", {
        tenantKey,
        ...rangeOf(replay),
        ...(replay.kind === "failed" && { state: stateNumber.FAILED }),
        ...(webhookKeys && { webhookKeys }),
        ...(typeHash !== null && { typeHash }),
      });
    },

    /** Whether a filter takes an event. */
    takes(tenantKey: number, seq: number, filter: ReplayFilter = {}): boolean {
      const { fromSeq, toSeq } = selectionOf({}, filter, seq);
      if (seq < fromSeq || seq > toSeq) return false;
      return eventsAfter.get(...valuesOf(tenantKey, seq - 1, seq, 1, narrowingOf(tenantKey, filter))) !== null;
    },

    /** The next events of a bulk replay. */
    next({ tenantKey, kind, cursorSeq, toSeq, createdAt, filter }: ReplayRow, limit: number): NextEvents {
      const narrowing = narrowingOf(tenantKey, filterOf(filter) ?? {});
      const { webhookKeys, typeHash } = narrowing;
      const isNarrow = webhookKeys !== null || typeHash !== null;
      const end = kind === "failed" ? behind.ofFailed : behind.ofAll;
      // The next one that a filter takes may be far away, and others wait for the transaction.
      const lookedTo = (isNarrow && end.get(tenantKey, cursorSeq, toSeq)?.seq) || toSeq;
      const values = valuesOf(tenantKey, cursorSeq, lookedTo, limit, narrowing);
      const found = kind === "failed" ? failedAfter.all(...values, createdAt) : eventsAfter.all(...values);
      return { seqs: found.map(({ seq }) => seq), lookedTo, webhookKeys };
    },
  };
}

const valuesOf = (
  tenantKey: number,
  afterSeq: number,
  toSeq: number,
  limit: number,
  { webhookKeys, typeHash }: Narrowing,
): SelectionValues => [
  tenantKey,
  afterSeq,
  toSeq,
  limit,
  webhookKeys === null ? null : JSON.stringify(webhookKeys),
  typeHash,
];
