/**
 * Whether the connection is still there. The system keeps a dead one open for minutes, and a machine that slept does not
 * know that it did: timers stood still, and what arrived before is still handed over as if it were news.
 */

/** The server says something every 15 s (rules, section 11): two of those are missing. */
const quietMs = 32_000;
/** Until there is an answer at all: browsers ask on connections that they kept, and those may be dead as well. */
const unansweredMs = 10_000;
/** Of a tab that comes into view again, the user expects news at once: one is missing. */
const quietOnSightMs = 17_000;
/** How often one looks. */
export const lookEveryMs = 5_000;
/** A look that is this late means that the machine slept. */
const sleptMs = 10_000;

export interface Look {
  /** The answer has begun. */
  readonly isOpen: boolean;
  readonly now: number;
  readonly heardAt: number;
  /** Of the look before; both by the wall clock, because others stand still while a machine sleeps. */
  readonly lookedAt: number;
  /** The tab came into view just now. */
  readonly isComing: boolean;
  /** It was in view then and is now: browsers let the timers of hidden tabs wait. */
  readonly isWatched: boolean;
}

/** Says that a connection is to be given up. */
export function isLost({ isOpen, now, heardAt, lookedAt, isComing, isWatched }: Look): boolean {
  const quiet = now - heardAt;
  if (quiet > (isOpen ? quietMs : unansweredMs) || (isComing && quiet > quietOnSightMs)) return true;
  return isWatched && now - lookedAt > lookEveryMs + sleptMs;
}
