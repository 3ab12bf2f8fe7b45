import type { Clock } from "./clock.ts";

/**
 * A reading of the database's clock, with the times on this machine's monotonic clock when it was asked and when the
 * answer came.
 */
export interface DatabaseTime {
  /** Milliseconds since the Unix epoch. */
  readonly now: number;
  readonly sentAt: number;
  readonly heardAt: number;
}

/** The clock that all nodes go by: the database's, carried forward between its answers by this machine's monotonic one. */
export interface DatabaseClock extends Clock {
  heard(time: DatabaseTime): void;
}

/** How far two clocks may drift apart per millisecond: several times what a time server corrects by. */
const driftPerMs = 0.001;

/**
 * The database read its clock at some moment between question and answer, so each answer bounds how far its clock is
 * ahead of the monotonic one. What was known before still holds, widened by how far the clocks may have drifted since:
 *
 *   known   ├──────────────┤           the offset is moved into what both leave, and no further; most answers leave it
 *   answer        ├───────────────┤    alone, and a slow one, which says little, never moves it far
 *   both          ├────────┤
 *
 * If they leave nothing, the clock was set, or another server answers, and the middle of the answer counts from now on.
 * The machine's own wall clock is used until the first answer, and never again.
 */
export function createDatabaseClock(source: Clock): DatabaseClock {
  /** The database's clock minus the monotonic one. */
  let offset = source.now() - source.monotonicMs();
  /** The bounds of the offset as of the last answer. */
  let known = { least: Number.NEGATIVE_INFINITY, most: Number.POSITIVE_INFINITY, at: Number.NEGATIVE_INFINITY };

  return {
    ...source,
    now: () => Math.floor(source.monotonicMs() + offset),
    heard({ now, sentAt, heardAt }) {
      const isFirst = known.at === Number.NEGATIVE_INFINITY;
      const drift = isFirst ? 0 : Math.max(0, heardAt - known.at) * driftPerMs;
      const least = Math.max(now - heardAt, known.least - drift);
      const most = Math.min(now - sentAt, known.most + drift);
      if (isFirst || least > most) {
        offset = now - (sentAt + heardAt) / 2;
        known = { least: now - heardAt, most: now - sentAt, at: heardAt };
      } else {
        offset = Math.min(Math.max(offset, least), most);
        known = { least, most, at: heardAt };
      }
    },
  };
}
