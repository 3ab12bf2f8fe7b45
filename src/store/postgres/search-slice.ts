import { isInId, type Needle, type SeqRange, type Slice, sliceRecords, wholeEvents } from "../search.ts";
import { arrayText } from "./parameters.ts";
import type { Transaction } from "./pool.ts";
import { pagePlaces, type RecordFilter, type RecordPlace } from "./record-walks.ts";

/** Each is looked up in the partition that it is in. When the id may match, too, all of them are returned. */
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
  const seqs = [...new Set(whole.map(({ eventSeq }) => eventSeq))];
  const [text = noBytes, other = text] = needle.texts;
  const rows = await tx.run<{ seq: number; idTail: Uint8Array; isFound: boolean }>(foundText, [
    ...[filter.tenantKey, arrayText(seqs), text, other, needle.idPart !== null],
  ]);
  const found = new Set(
    rows.filter(({ seq, idTail, isFound }) => isFound || isInId(needle, seq, idTail)).map(({ seq }) => seq),
  );
  return { found: whole.filter(({ eventSeq }) => found.has(eventSeq)), events: seqs.length, nextSeq };
}

const noBytes = new Uint8Array();
