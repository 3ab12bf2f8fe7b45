import type { Clock } from "./clock.ts";

/** A wall clock that moves by more than this against the monotonic one has jumped. Time servers correct by far less. */
const jumpMs = 3_600_000;

/** How long a jump ahead must last before it is believed. */
export const disbeliefMs = 600_000;

export type ClockNews =
  /** The wall clock is ahead of where it should be, and is not followed until `disbeliefMs` have passed. */
  | { kind: "ahead"; byMs: number }
  /** It is back where it should be, before the jump was believed. */
  | { kind: "ahead_over" }
  /** It has stayed ahead, and is followed now. */
  | { kind: "ahead_believed"; byMs: number }
  /** It was set back, and is followed immediately. */
  | { kind: "back"; byMs: number };

export interface SteadyClockOptions {
  source: Clock;
  /** Milliseconds since the machine started, including those in which it slept; the monotonic clock leaves them out. */
  uptimeMs(): number;
  tell(news: ClockNews): void;
}

/**
 * A wall clock that does not immediately follow a jump ahead. What a time server or a hypervisor gets wrong for a minute would
 * otherwise stay in the ids of events permanently: ids only ever grow, so after a jump of 40 days and back, events would carry
 * a wrong time, and count in a wrong month, for 40 days.
 *
 *   ahead by more than an hour ─▶ time goes on as before ─┬─ the wall clock comes back ─▶ nothing has happened
 *                                                         └─ 10 minutes pass ─▶ the new time is believed
 *
 * A machine that has slept is rightly ahead and is followed immediately; so is a clock that is set back, because ids need no
 * help there. At startup there is no telling: a wrong clock looks like a server that was off for that long.
 */
export function createSteadyClock({ source, uptimeMs, tell }: SteadyClockOptions): Clock {
  /** Wall clock minus monotonic clock, as believed. */
  let offset = source.now() - source.monotonicMs();
  /** Uptime minus monotonic clock: how long the machine has slept. */
  let slept = uptimeMs() - source.monotonicMs();
  let disbelief: { sinceMs: number; byMs: number } | null = null;

  function judge(wall: number, monotonic: number): number {
    const byMs = wall - monotonic - offset;
    if (byMs < 0) {
      tell({ kind: "back", byMs: -byMs });
    } else {
      const sleptNow = uptimeMs() - monotonic;
      const hasSlept = Math.abs(byMs - (sleptNow - slept)) <= jumpMs;
      if (!hasSlept && !isBelieved(byMs, monotonic)) return Math.floor(monotonic + offset);
      slept = sleptNow;
    }
    disbelief = null;
    offset = wall - monotonic;
    return wall;
  }

  function isBelieved(byMs: number, monotonic: number): boolean {
    if (disbelief === null || Math.abs(byMs - disbelief.byMs) > jumpMs) {
      disbelief = { sinceMs: monotonic, byMs };
      tell({ kind: "ahead", byMs });
    }
    if (monotonic - disbelief.sinceMs < disbeliefMs) return false;
    tell({ kind: "ahead_believed", byMs });
    return true;
  }

  return {
    ...source,
    now() {
      const wall = source.now();
      const monotonic = source.monotonicMs();
      const drift = wall - monotonic - offset;
      if (drift > jumpMs || drift < -jumpMs) return judge(wall, monotonic);
      if (disbelief !== null) {
        disbelief = null;
        tell({ kind: "ahead_over" });
      }
      offset += drift;
      return wall;
    },
  };
}
