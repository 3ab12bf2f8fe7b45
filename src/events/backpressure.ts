import { narrowed, type OwnTimes, widened } from "../delivery/own-times.ts";
import type { Clock } from "../lib/clock.ts";
import { createTurnstile } from "../lib/turnstile.ts";
import { heavyEvents } from "../store/store.ts";

/**
 * Makes accepting give way to delivering. Both need the same processor, and a client that posts as fast as it gets answers
 * would take all of it: 1,000 clients had 9,700 events a second accepted and 4,100 delivered, which arrived seconds late.
 *
 * The signal is how long the next delivery would spend on our side if it could go right now: the time that attempts take
 * apart from that of their receivers (on the way to the sender thread, in its queues, and back), plus the wait for a place
 * among those in flight. Attempts alone do not tell: their number is bounded, so on a fast machine they take 40 ms however
 * many wait behind them. There, 1,000 clients had their events delivered up to 12 s late.
 *
 * While that time is long, fewer events are accepted at a time, or none; the others wait, with accounts taking turns, and get
 * their 202 later. Webhooks that are slow, limited or dead take no time on our side, so they hold nobody up. Nor does
 * anything that is sent again or was accepted long ago: a replay, retries, a backlog after an outage.
 *
 *   deliveries prompt ─▶ more at a time, up to all       deliveries late ─▶ fewer at a time, then none for a moment
 */
export interface Backpressure {
  /**
   * Begins to accept this many events.
   * @returns null when they may go ahead immediately, otherwise a promise that resolves when it is their turn. Whoever has
   *   begun must call `end` with the same number.
   */
  begin(tenantKey: number, events: number): Promise<void> | null;
  end(events: number): void;
  /** Takes note of how long recent attempts spent on our side. */
  heed(times: OwnTimes): void;
}

/** Events that may be in acceptance at a time. */
const most = 256;
/**
 * A large batch counts as this many events. The store already takes such batches one at a time, and takes what others send
 * between two of them; other clients would lose that chance if they had to wait here until the batch is through.
 */
const heavyWeight = 16;

/**
 * Times that a delivery spends on our side: above the first acceptance is narrowed, below the second it is widened. At 25 ms,
 * a server that took twice as long for everything left a seventh of its processors idle.
 */
const lateMs = 60;
const promptMs = 8;
/** Acceptance closes only from here on: below this, one at a time is few enough, and closing would leave the processor idle. */
const veryLateMs = 120;
/** Less than one, so nothing passes. */
const closedWidth = 0.5;
/** With fewer deliveries on our side, it is not their number that makes them late but other work on the machine. */
const fewWaiting = 16;

/** The longest that nothing passes. */
const longestMs = 100;
/** Without an answered attempt for this long nothing is known, so nobody waits. */
const forgetMs = 500;

/** @param waitingForPlace how many fresh deliveries could go right now, if there were a place among the attempts in flight */
export function createBackpressure(clock: Clock, waitingForPlace: () => number): Backpressure {
  const turnstile = createTurnstile<number>(most);
  /** Below 1 it is closed. */
  let width = most;
  let closedAt = 0;
  let narrowedAt = 0;
  let reopen: (() => void) | null = null;
  let heededAt = clock.monotonicMs();

  function widen(to: number): void {
    if (to < 1 && width >= 1) closedAt = clock.monotonicMs();
    width = Math.min(to, most);
    turnstile.widen(Math.floor(width));
    reopen?.();
    // The attempts in flight may never be answered.
    reopen = width < 1 ? clock.after(longestMs, () => widen(1)) : null;
  }

  function narrow(now: number, averageMs: number): void {
    narrowedAt = now;
    const hasStoodLong = width < 1 && now - closedAt >= longestMs;
    widen(hasStoodLong ? 1 : Math.max(narrowed(width, averageMs, lateMs), averageMs > veryLateMs ? closedWidth : 1));
  }

  function heed({ attempts, ownMs, newOwnMs, elapsedMs }: OwnTimes): void {
    const now = clock.monotonicMs();
    heededAt = now;
    // While attempts are prompt on our side, the places are held by receivers that hang.
    const queued = ownMs < promptMs * attempts ? 0 : waitingForPlace();
    // Both follow from Little's law: what waits goes out as fast as the last attempts came back, and the quotient is the
    // number of attempts on our side.
    const averageMs = (ownMs + queued * elapsedMs) / attempts;
    const waiting = queued + ownMs / elapsedMs;
    const isLate = averageMs > lateMs && waiting > fewWaiting;
    if (isLate && newOwnMs * 2 > ownMs) {
      if (now - narrowedAt >= ownMs / attempts) narrow(now, averageMs);
    } else if (width < most && (isLate || averageMs < promptMs || waiting < fewWaiting)) {
      widen(Math.max(widened(width), 1));
    }
  }

  return {
    begin(tenantKey, events) {
      if (width < most && clock.monotonicMs() - heededAt > forgetMs) widen(most);
      return turnstile.pass(tenantKey, weightOf(events));
    },
    end: (events) => turnstile.leave(weightOf(events)),
    heed,
  };
}

const weightOf = (events: number) => (events < heavyEvents ? events : heavyWeight);
