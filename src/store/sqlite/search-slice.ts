import type { Database } from "bun:sqlite";
import { isInId, type Needle, type Slice, sliceBytes, type WholeEvents } from "../search.ts";
import { unlessDamaged } from "./damage.ts";
import type { RecordPlace } from "./record-steps.ts";

interface EventRow {
  idTail: Uint8Array;
  bytes: number;
  isFound: number;
}

/** Nothing is found in a damaged event. */
export function searchSlice(
  client: Database,
  { whole, nextSeq }: WholeEvents<RecordPlace>,
  needle: Needle,
): Slice<RecordPlace> {
  const [text, other = text] = needle.texts;
  const event = client.query<EventRow, [number, Uint8Array, Uint8Array]>(
    `select id_tail as idTail, length(payload) as bytes, instr(payload, ?2) > 0 or instr(payload, ?3) > 0 as isFound
     from event where seq = ?1`,
  );
  const found: RecordPlace[] = [];
  let events = 0;
  let bytes = 0;
  let seq = -1;
  let isFound = false;
  for (const place of whole) {
    if (place.eventSeq !== seq) {
      if (bytes >= sliceBytes) return { found, events, nextSeq: place.eventSeq };
      seq = place.eventSeq;
      const row = text && other && unlessDamaged(() => event.get(place.eventSeq, text, other));
      isFound = !!row && (row.isFound === 1 || isInId(needle, seq, row.idTail));
      bytes += row ? row.bytes : 0;
      events += 1;
    }
    if (isFound) found.push(place);
  }
  return { found, events, nextSeq };
}
