/**
 * How many bytes the events of an account take. With few events, each is measured; with many, every n-th record, which costs
 * a walk through one index in slices and a few thousand reads. In return, nothing has to be counted when an event comes in or
 * is delivered.
 */

/** A record, with the size of its event and of all that event's attempts. */
export interface MeasuredRecord {
  readonly eventSeq: number;
  /** How many records its event has. */
  readonly records: number;
  /** What is stored for the event besides numbers. */
  readonly eventBytes: number;
  readonly recordBytes: number;
  readonly attempts: number;
  readonly attemptBytes: number;
}

/** The overhead of a row on top of what is stored in it, including its index entries. */
export interface RowSizes {
  readonly event: number;
  readonly record: number;
  readonly attempt: number;
  /** How a row is placed in pages that are filled one after the other. Without it, a row counts as its bytes alone. */
  place?(rowBytes: number): Place;
}

/** The part of a row that shares a page with others, and the whole pages that it takes in addition. */
export interface Place {
  readonly inPage: number;
  readonly ownPages: number;
}

const pageBytes = 4_096;

/** At least this many records are measured, if there are that many. */
export const sampleSize = 8_000;

/** Records that are measured in one go. */
export const measuredAtOnce = 200;

/** Every n-th record is measured. The step is odd, so that keys assigned in steps are met as often as others. */
export const stepOf = (records: number): number => (records <= sampleSize ? 1 : Math.floor(records / sampleSize) | 1);

/** @param slice the next measured records of the events after `afterSeq`, in order; some of the last event's may be missing */
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
      // An event's size is divided among its records.
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

/** Takes rows as they come and returns the space of each, including what is wasted in the page when the next one does not fit. */
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
