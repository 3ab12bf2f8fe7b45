import { isInId, type Needle, type SeqRange, type Slice, sliceRecords, wholeEvents } from "../search.ts";
import { arrayText } from "./parameters.ts";
import type { Transaction } from "./pool.ts";
import { pagePlaces, type RecordFilter, type RecordPlace } from "./record-walks.ts";

/** Each is looked up in the partition that it lies in. What may be found by its id comes back as well. */
export const foundText = `select event.seq::float8 as seq, id_tail as "idTail", "isFound"
  from unnest($2::bigint[]) as given (seq) cross join lateral (
    select seq, id_tail, position($3::bytea in payload) > 0 or position($4::bytea in payload) > 0 as "isFound"
    from event where event.seq = given.seq and tenant_key = $1::bigint limit 1) event
  where "isFound" or $5::boolean`;

export async function searchSlice(
  tx: Pick<Transaction, "run">,
  filter: RecordFilter,
  needle: Needle,
  range: SeqRange,
): Promise<Slice<RecordPlace>> {
  const places = await pagePlaces(tx, { ...filter, ...range }, { offset: 0, limit: sliceRecords });
  const { whole, nextSeq } = wholeEvents(places);
  const asked = needle.replayKey === null ? whole : await ofReplay(tx, filter.tenantKey, whole, needle.replayKey);
  const [text, other = text] = needle.texts;
  if (text === undefined) return { found: asked, events: new Set(whole.map(({ eventSeq }) => eventSeq)).size, nextSeq };
  const seqs = [...new Set(asked.map(({ eventSeq }) => eventSeq))];
  const rows = await tx.run<{ seq: number; idTail: Uint8Array; isFound: boolean }>(foundText, [
    ...[filter.tenantKey, arrayText(seqs), text, other ?? text, needle.idPart !== null],
  ]);
  const found = new Set(
    rows.filter(({ seq, idTail, isFound }) => isFound || isInId(needle, seq, idTail)).map(({ seq }) => seq),
  );
  return { found: asked.filter(({ eventSeq }) => found.has(eventSeq)), events: seqs.length, nextSeq };
}

/** Each is looked up in the queue, and in the partition of the history that it lies in. */
export const ofReplayText = `select given.key::float8 as key from unnest($2::bigint[], $3::bigint[]) as given (seq, key)
  cross join lateral (
    (select 1 from pending where pending.tenant_key = $1::bigint and pending.event_seq = given.seq
      and pending.key = given.key and pending.replay_key = $4::bigint limit 1)
    union all
    (select 1 from delivery where delivery.tenant_key = $1::bigint and delivery.event_seq = given.seq
      and delivery.key = given.key and delivery.replay_key = $4::bigint limit 1)) record`;

async function ofReplay(
  tx: Pick<Transaction, "run">,
  tenantKey: number,
  places: readonly RecordPlace[],
  replayKey: number,
): Promise<readonly RecordPlace[]> {
  const rows = await tx.run<{ key: number }>(ofReplayText, [
    ...[tenantKey, arrayText(places.map(({ eventSeq }) => eventSeq))],
    ...[arrayText(places.map(({ key }) => key)), replayKey],
  ]);
  const keys = new Set(rows.map(({ key }) => key));
  return places.filter(({ key }) => keys.has(key));
}
