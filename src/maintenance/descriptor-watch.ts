import type { Clock } from "../lib/clock.ts";
import { countDescriptors, createReserveDescriptor, type Descriptors } from "../lib/descriptors.ts";
import type { Log } from "../lib/log.ts";

/** A look costs 5 µs, an open and a close; but each one wakes up two threads of an idle server. */
const shortestPauseMs = 250;
const longestPauseMs = 30_000;

/**
 * One thread takes 8.4 connections per millisecond (two cores, measured), so there is a look before all descriptors are
 * taken.
 */
const takenPerMs = 10;

/**
 * How much longer an idle server waits between looks. Connections that bring no request may use up all descriptors meanwhile;
 * further ones then wait in the system's queue for that long, but the server has nothing else to do.
 */
const restFactor = 4;

const pauseMs = (free: number, isResting: boolean) => {
  const untilTaken = Math.max(free / takenPerMs, shortestPauseMs);
  return Math.min(isResting ? untilTaken * restFactor : untilTaken, longestPauseMs);
};

/** With fewer free descriptors than this, connections are closed: a quarter of the limit, within these bounds. */
const smallestReserve = 16;
const largestReserve = 1024;

/** A shortage is over after this long without one. */
const calmMs = 10_000;

export interface DescriptorWatchDeps {
  clock: Pick<Clock, "monotonicMs" | "after">;
  log: Log;
  /** Closes up to this many idle connections. @returns how many it closed */
  shed(count: number): number;
  /** @default those of this process; null where the system does not report them */
  count?(): Descriptors | null;
  /**
   * The number that a new descriptor would get, which is the lowest free one; the limit when none is free. @default the
   * system's
   */
  lowestFree?(limit: number): number;
}

export interface DescriptorWatch {
  start(): void;
  stop(): void;
  /** Called when a request has come, so the server is not idle. */
  noteRequest(): void;
  count(): Descriptors | null;
}

/**
 * Keeps descriptors free for the database, name look-ups, deliveries and the next client: when connections have taken most of
 * them, idle connections are closed. One log line says when that begins, one when it is over.
 *
 * It looks at the number that a new descriptor gets, which is the lowest free one. While that is low, there is room; when it
 * is high, everything below it is taken.
 */
export function createDescriptorWatch({
  clock,
  log,
  shed,
  count = countDescriptors,
  lowestFree,
}: DescriptorWatchDeps): DescriptorWatch {
  const reserve = createReserveDescriptor();
  const lowest = lowestFree ?? reserve.lowestFree;
  const counted = () => reserve.lend(count);
  let cancel: (() => void) | null = null;
  let isUsed = false;
  /** Set while an idle server waits for its next look; shortens that wait. */
  let wake: (() => void) | null = null;
  let episode: { since: number; lastAt: number; closed: number } | null = null;

  function look(limit: number): void {
    const kept = Math.min(Math.max(Math.floor(limit / 4), smallestReserve), largestReserve);
    const next = lowest(limit);
    const lookAfter = (delayMs: number) => {
      cancel?.();
      cancel = clock.after(delayMs, () => look(limit));
    };
    const isShort = next >= limit - kept;
    const isResting = !isUsed && !isShort && episode === null;
    isUsed = false;
    wake = isResting ? () => lookAfter(pauseMs(limit - next, false)) : null;
    lookAfter(episode === null ? pauseMs(limit - next, isResting) : shortestPauseMs);
    if (isShort) relieve(kept);
    else if (episode !== null && clock.monotonicMs() - episode.lastAt >= calmMs) end(episode);
  }

  function relieve(kept: number): void {
    const now = clock.monotonicMs();
    const closed = reserve.lend(() => {
      const { open = 0, limit = 0 } = count() ?? {};
      return shed(open - (limit - 2 * kept));
    });
    if (episode === null) {
      episode = { since: now, lastAt: now, closed: 0 };
      const { open, limit } = counted() ?? {};
      log.write("warn", "descriptors.short", {
        limit,
        closed,
        open,
        message:
          "Connections use most of the file descriptors, so idle ones are closed. " +
          "Try: raise the limit (LimitNOFILE, ulimit -n), or put a proxy that limits connections in front.",
      });
    }
    episode.lastAt = now;
    episode.closed += closed;
  }

  function end({ since, closed }: { since: number; closed: number }): void {
    episode = null;
    log.write("info", "descriptors.enough", { closed, seconds: Math.round((clock.monotonicMs() - since) / 1000) });
  }

  return {
    start() {
      const limit = count()?.limit;
      if (limit !== undefined) look(limit);
    },
    stop() {
      wake = null;
      cancel?.();
      reserve.release();
    },
    noteRequest() {
      isUsed = true;
      wake?.();
      wake = null;
    },
    count: counted,
  };
}
