import type { Database } from "bun:sqlite";
import { isInId, type Needle, type Slice, wholeEvents } from "../search.ts";
import { unlessDamaged } from "./damage.ts";
import type { RecordPlace } from "./record-steps.ts";

/** Of payloads that one slice looks through: a few hundred of the largest would be 100 MB. */
const sliceBytes = 8 * 2 ** 20;

interface EventRow {
  idTail: Uint8Array;
  bytes: number;
  isFound: number;
}

/** Of an event that is damaged nothing is found. */
export function searchSlice(client: Database, places: readonly RecordPlace[], needle: Needle): Slice<RecordPlace> {
  const [text, other = text] = needle.texts;
  const { whole, nextSeq } = wholeEvents(places);
  const asked = needle.replayKey === null ? whole : ofReplay(client, whole, needle.replayKey);
  if (text === undefined) return { found: asked, events: new Set(whole.map(({ eventSeq }) => eventSeq)).size, nextSeq };
  const event = client.query<EventRow, [number, Uint8Array, Uint8Array]>(
    `select id_tail as idTail, length(payload) as bytes, instr(payload, ?2) > 0 or instr(payload, ?3) > 0 as isFound
     from event where seq = ?1`,
  );
  const found: RecordPlace[] = [];
  let events = 0;
  let bytes = 0;
  let seq = -1;
  let isFound = false;
  for (const place of asked) {
    if (place.eventSeq !== seq) {
      if (bytes >= sliceBytes) return { found, events, nextSeq: place.eventSeq };
      seq = place.eventSeq;
      const row = unlessDamaged(() => event.get(place.eventSeq, text, other ?? text));
      isFound = !!row && (row.isFound === 1 || isInId(needle, seq, row.idTail));
      bytes += row ? row.bytes : 0;
      events += 1;
    }
    if (isFound) found.push(place);
  }
  return { found, events, nextSeq };
}

function ofReplay(client: Database, places: readonly RecordPlace[], replayKey: number): readonly RecordPlace[] {
  const rows = client
    .query<{ key: number }, [string, number]>(
      "select key from delivery where key in (select value from json_each(?1)) and replay_key = ?2",
    )
    .all(JSON.stringify(places.map(({ key }) => key)), replayKey);
  const keys = new Set(rows.map(({ key }) => key));
  return places.filter(({ key }) => keys.has(key));
}
