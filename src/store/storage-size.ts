/**
 * How many bytes the events of an account take. Of few events each is measured; of many every so-manieth record, which costs a
 * walk through one index in slices and some thousand reads: nothing is counted as an event comes in or is delivered.
 */

/** A record, with what its event and all attempts of that have in them. */
export interface MeasuredRecord {
  readonly eventSeq: number;
  /** Of its event. */
  readonly records: number;
  /** What is stored of the event besides numbers. */
  readonly eventBytes: number;
  readonly recordBytes: number;
  readonly attempts: number;
  readonly attemptBytes: number;
}

/** What a row takes beside what is stored in it, and its entries in indexes. */
export interface RowSizes {
  readonly event: number;
  readonly record: number;
  readonly attempt: number;
  /** How rows come to lie in pages, one after the other; null: as much as they have, as far as anybody can say. */
  place?(rowBytes: number): Place;
}

/** What of a row lies among others, and whole pages beside them. */
export interface Place {
  readonly inPage: number;
  readonly ownPages: number;
}

const pageBytes = 4_096;

/** Records that are measured at least, of so many and more. */
export const sampleSize = 8_000;

/** Records that are measured in one go. */
export const measuredAtOnce = 200;

/** Every so-manieth record is measured. Odd, so that keys that are given in steps are met as often as others. */
export const stepOf = (records: number): number => (records <= sampleSize ? 1 : Math.floor(records / sampleSize) | 1);

/** @param slice the next measured records of events after one, in their order; those of the last event may be missing */
export async function measureStorage(
  records: number,
  sizes: RowSizes,
  slice: (afterSeq: number, step: number) => Promise<readonly MeasuredRecord[]>,
): Promise<number> {
  const step = stepOf(records);
  const [eventRoom, attemptRoom] = [createRoom(sizes), createRoom(sizes)];
  let measured = 0;
  let bytes = 0;
  for (let afterSeq = 0; ; ) {
    const found = await slice(afterSeq, step);
    const last = found.at(-1);
    const isMore = last !== undefined && found.length >= measuredAtOnce;
    const some = isMore ? found.filter(({ eventSeq }) => eventSeq !== last.eventSeq) : found;
    for (const { records: ofEvent, eventBytes, recordBytes, attempts, attemptBytes } of some) {
      // What an event takes is divided among its records.
      const event = eventRoom(sizes.event + eventBytes);
      const all = attempts === 0 ? 0 : attempts * attemptRoom(sizes.attempt + attemptBytes / attempts);
      bytes += (event + all) / ofEvent + sizes.record + recordBytes;
    }
    measured += some.length;
    if (!isMore) break;
    afterSeq = last.eventSeq - 1;
  }
  return measured === 0 ? 0 : Math.round((bytes * records) / measured);
}

/** Rows as they come, and the room that each takes, with what is left behind it when the next one does not fit. */
function createRoom({ place }: RowSizes): (rowBytes: number) => number {
  if (!place) return (rowBytes) => rowBytes;
  let used = 0;
  return (rowBytes) => {
    const { inPage, ownPages } = place(rowBytes);
    const isFull = used + inPage > pageBytes;
    const wasted = isFull ? pageBytes - used : 0;
    used = (isFull ? 0 : used) + inPage;
    return ownPages * pageBytes + inPage + wasted;
  };
}
