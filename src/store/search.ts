import type { Clock } from "../lib/clock.ts";
import { encodeEventId, ingestedAtMs, parseEventId } from "../lib/id.ts";

/**
 * Searches the records of an account for a text, newest first, in slices: no other work waits for more than one slice, and
 * the search stops once it has cost enough, however long the history. The answer says how far it got.
 */

/** Rules, section 15: a search looks at this many events, or for this long. */
const mostEvents = 200_000;
const mostMs = 500;

/** Records that are looked at in one go: takes some milliseconds. A single event may have more. */
export const sliceRecords = 500;

/** The payloads that are: 500 of the largest would be 100 MB. The event that reaches it is the last of its slice. */
export const sliceBytes = 8 * 2 ** 20;

/** What is searched for, in the form in which a backend compares it. */
export interface Needle {
  /** The text as given, and as it would appear in a JSON string if that differs. Payloads are compared byte for byte. */
  readonly texts: readonly Uint8Array[];
  /** The text as it could appear in an id; null when it cannot. */
  readonly idPart: string | null;
}

const utf8 = new TextEncoder();

export function needleOf(text: string): Needle {
  const inJson = JSON.stringify(text).slice(1, -1);
  const lower = text.toLowerCase();
  return {
    texts: (inJson === text ? [text] : [text, inJson]).map((each) => utf8.encode(each)),
    idPart: /^[a-z0-9_]+$/.test(lower) ? lower : null,
  };
}

export const isInId = ({ idPart }: Needle, seq: number, idTail: Uint8Array): boolean =>
  idPart !== null && encodeEventId(seq, idTail).includes(idPart);

/** Event numbers, both inclusive. */
export interface SeqRange {
  readonly fromSeq?: number | undefined;
  readonly toSeq?: number | undefined;
}

export interface Slice<Place> {
  /** Records of events that contain the text, or have it in their ids, newest first. */
  readonly found: readonly Place[];
  /** How many events were looked at. */
  readonly events: number;
  /** The newest event that was not looked at; null when there is none. */
  readonly nextSeq: number | null;
}

export interface SearchOptions<Place> {
  readonly text: string;
  readonly range: SeqRange;
  readonly offset: number;
  readonly limit: number;
  readonly clock: Pick<Clock, "monotonicMs">;
  /** Looks at the newest records of a range, this many at most. No event, if the newest one has as many. */
  look(needle: Needle, range: SeqRange, records: number): Promise<Slice<Place>>;
}

export interface SearchResult<Place> {
  readonly places: readonly Place[];
  /** Found so far. */
  readonly total: number;
  readonly totalIsExact: boolean;
  /** Ingestion time down to which everything was searched; null when the whole range was. */
  readonly searchedTo: number | null;
}

/**
 * Stops as soon as the page is full and one more record is found; the request for the next page searches on. Never within the
 * last millisecond of its range, which holds 2,048 events at most: a search of what is left would look at the same again.
 */
export async function searchRecords<Place extends { readonly eventSeq: number }>(
  options: SearchOptions<Place>,
): Promise<SearchResult<Place>> {
  const { text, range, offset, limit, clock, look } = options;
  const needle = needleOf(text);
  const page = (found: readonly Place[], nextSeq: number | null): SearchResult<Place> => ({
    places: found.slice(offset, offset + limit),
    total: found.length,
    totalIsExact: nextSeq === null,
    searchedTo: nextSeq === null ? null : ingestedAtMs(nextSeq),
  });

  /** A slice that no whole event fits in grows. */
  async function lookAt(slice: SeqRange): Promise<Slice<Place>> {
    for (let records = sliceRecords; ; records *= 2) {
      const looked = await look(needle, slice, records);
      if (looked.events > 0 || looked.nextSeq === null) return looked;
    }
  }

  const deadline = clock.monotonicMs() + mostMs;
  const found: Place[] = [];
  // A whole id is found wherever it lies, and first. Payloads of other events may name it.
  const seq = parseEventId(needle.idPart ?? "")?.seq;
  if (seq !== undefined && seq >= (range.fromSeq ?? 0) && seq <= (range.toSeq ?? seq)) {
    found.push(...(await lookAt({ fromSeq: seq, toSeq: seq })).found);
  }

  const lastMs = ingestedAtMs(range.toSeq ?? Number.POSITIVE_INFINITY);
  let toSeq = range.toSeq;
  for (let events = 0; ; ) {
    const slice = await lookAt({ fromSeq: range.fromSeq, toSeq });
    found.push(...slice.found.filter(({ eventSeq }) => eventSeq !== seq));
    events += slice.events;
    const isEnough = found.length > offset + limit || events >= mostEvents || clock.monotonicMs() >= deadline;
    if (slice.nextSeq === null || (isEnough && ingestedAtMs(slice.nextSeq) < lastMs)) return page(found, slice.nextSeq);
    toSeq = slice.nextSeq;
  }
}

export interface WholeEvents<Place> {
  readonly whole: readonly Place[];
  /** The event that was left to the next slice. */
  readonly nextSeq: number | null;
}

/**
 * A slice ends with a whole event: the last event of a full slice is left to the next slice.
 * @param records how many it may have
 */
export function wholeEvents<Place extends { readonly eventSeq: number }>(
  places: readonly Place[],
  records: number,
): WholeEvents<Place> {
  const last = places.at(-1);
  if (places.length < records || last === undefined) return { whole: places, nextSeq: null };
  return { whole: places.filter(({ eventSeq }) => eventSeq !== last.eventSeq), nextSeq: last.eventSeq };
}
