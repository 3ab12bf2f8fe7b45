import { narrowed, type OwnTimes, widened } from "../delivery/own-times.ts";
import type { Clock } from "../lib/clock.ts";
import { createTurnstile } from "../lib/turnstile.ts";
import { heavyEvents } from "../store/store.ts";

/**
 * Accepting gives way to delivering. Both need the same processor, and whoever posts as fast as it is answered would have all of
 * it: 1,000 clients had 9,700 events a second accepted and 4,100 delivered, which came seconds late.
 *
 * What tells is how long the next delivery would take by us, could it go at once: the time that attempts take beside that of their
 * receivers (on the way to the thread that sends, in its queues, and back), and the wait for a place among those under way. Attempts
 * alone do not tell: their number is bounded, so on a fast machine they take 40 ms, however many wait behind them. There, 1,000
 * clients had their events delivered up to 12 s late.
 *
 * While it is long, fewer events are accepted at a time, or none; the others wait, accounts in turn, and get their 202 later.
 * Webhooks that are slow, limited or dead take no time of ours, so they hold up nobody. Nor does what is sent once more or was
 * accepted long ago: a replay, retries, a backlog after an outage.
 *
 *   deliveries prompt ─▶ more at a time, up to all       deliveries late ─▶ fewer at a time, then none for a moment
 */
export interface Backpressure {
  /**
   * Begins to accept so many events.
   * @returns null: at once; else when it is their turn. Each that has begun must `end` with the same number.
   */
  begin(tenantKey: number, events: number): Promise<void> | null;
  end(events: number): void;
  /** What attempts took by us of late. */
  heed(times: OwnTimes): void;
}

/** Events that may be in acceptance at a time. */
const most = 256;
/**
 * A large batch counts as so many. The store takes them one by one as it is, and what others send between two of them: they
 * would miss that if they had to wait here until the batch is through.
 */
const heavyWeight = 16;

/**
 * What a delivery takes by us above and below which acceptance is narrowed and widened. With 25 ms, a server that took twice as
 * long for everything left a seventh of its processors with nothing to do.
 */
const lateMs = 60;
const promptMs = 8;
/** Only from here on it is closed: below, one at a time is few enough, and closing leaves the processor with nothing to do. */
const veryLateMs = 120;
/** Less than one: nothing passes. */
const closedWidth = 0.5;
/** With fewer deliveries on our side it is not their number that makes them late, but a machine that does other things. */
const fewWaiting = 16;

/** Nothing passes for this long at most. */
const longestMs = 100;
/** Without an answered attempt for so long nothing is known, and so nobody waits. */
const forgetMs = 500;

/** @param waitingForPlace how many fresh deliveries could go at once, but for a place among the attempts under way */
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
    // What was under way may never be answered.
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
    // While attempts are prompt by us, it is receivers that hang which hold the places.
    const queued = ownMs < promptMs * attempts ? 0 : waitingForPlace();
    // By Little's law, both: what waits goes out as fast as the last attempts came back, and those under way are as many as this.
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
