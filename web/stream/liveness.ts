/**
 * Whether the connection is still alive. The system keeps a dead one open for minutes, and a machine that slept does not
 * notice: timers stood still, and what arrived before is delivered as if it were news.
 */

/** The server sends something every 15 s (rules, section 11): two of those are missing. */
const quietMs = 32_000;
/** Until there is any response: browsers reuse kept-alive connections, and those may be dead as well. */
const unansweredMs = 10_000;
/** When a tab comes into view again, the user expects news immediately: one is missing. */
const quietOnSightMs = 17_000;
/** How often the connection is checked. */
export const lookEveryMs = 5_000;
/** A check that is this late means that the machine slept. */
const sleptMs = 10_000;

export interface Look {
  /** The response has begun. */
  readonly isOpen: boolean;
  readonly now: number;
  readonly heardAt: number;
  /** The time of the previous check; both by the wall clock, because other clocks stand still while a machine sleeps. */
  readonly lookedAt: number;
  /** The tab has just come into view. */
  readonly isComing: boolean;
  /** It was in view then and is now: browsers delay the timers of hidden tabs. */
  readonly isWatched: boolean;
}

/** Whether a connection should be given up. */
export function isLost({ isOpen, now, heardAt, lookedAt, isComing, isWatched }: Look): boolean {
  const quiet = now - heardAt;
  if (quiet > (isOpen ? quietMs : unansweredMs) || (isComing && quiet > quietOnSightMs)) return true;
  return isWatched && now - lookedAt > lookEveryMs + sleptMs;
}
