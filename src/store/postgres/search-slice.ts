import { isInId, type Needle, type SeqRange, type Slice, sliceBytes, wholeEvents } from "../search.ts";
import { bounded, readBounded } from "./bounded-read.ts";
import { arrayText } from "./parameters.ts";
import type { Transaction } from "./pool.ts";
import { pagePlaces, type RecordFilter, type RecordPlace } from "./record-walks.ts";

/**
 * Each event is looked up in the partition that it is in. Payloads beyond the bytes of a slice are not read: up to the filter,
 * a large one is only a reference to where it is stored.
 * @param texts how many are looked for, one or two
 */
export function foundText(texts: number): string {
  const conditions = ["$4", "$5"].slice(0, texts).map((text) => `position(${text}::bytea in payload) > 0`);
  return `select n, through, seq::float8 as seq, "idTail", ${conditions.join(" or ")} as "isFound" from (${bounded(`
    select n::int as n, octet_length(payload) as size, event.seq, id_tail as "idTail", payload
    from unnest($3::bigint[]) with ordinality as given (seq, n) cross join lateral (
      select seq, id_tail, payload from event where event.seq = given.seq and tenant_key = $2::bigint limit 1) event`)}
  ) looked order by n`;
}

export async function searchSlice(
  { run }: Pick<Transaction, "run">,
  filter: RecordFilter,
  needle: Needle,
  range: SeqRange,
  records: number,
): Promise<Slice<RecordPlace>> {
  const places = await pagePlaces({ run }, { ...filter, ...range }, { offset: 0, limit: records });
  const { whole, nextSeq } = wholeEvents(places, records);
  const seqs = [...new Set(whole.map(({ eventSeq }) => eventSeq))];
  const { rows, taken } = await readBounded<{ seq: number; idTail: Uint8Array; isFound: boolean }>(
    { read: run },
    foundText(needle.texts.length),
    { keys: seqs, bytes: sliceBytes },
    [filter.tenantKey, arrayText(seqs), ...needle.texts],
  );
  const found = new Set(
    rows.filter(({ seq, idTail, isFound }) => isFound || isInId(needle, seq, idTail)).map(({ seq }) => seq),
  );
  return {
    found: whole.filter(({ eventSeq }) => found.has(eventSeq)),
    events: taken,
    nextSeq: seqs[taken] ?? nextSeq,
  };
}
