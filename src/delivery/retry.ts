import type { NextStep } from "../domain/settlement.ts";
import type { Verdict } from "./verdict.ts";

/** Rules, section 8: each pause is varied by a fifth, so that what failed together does not come back together. */
const jitterShare = 0.2;

/** Rules, section 8: a receiver may ask for a longer pause, up to a day. */
const longestRetryAfterMs = 24 * 60 * 60 * 1000;

export interface RetryPolicy {
  /**
   * What follows an attempt.
   * @param attemptsInRun attempts of this run so far, this one included
   */
  after(verdict: Verdict, attemptsInRun: number, now: number): NextStep;
}

/** @param random 0 to 1, for the jitter */
export function createRetryPolicy(scheduleMs: readonly number[], random: () => number): RetryPolicy {
  return {
    after(verdict, attemptsInRun, now) {
      if (verdict.kind === "acknowledged") return { kind: "delivered" };
      if (verdict.kind === "permanent") return { kind: "failed" };
      const pauseMs = scheduleMs[attemptsInRun - 1];
      if (pauseMs === undefined) return { kind: "failed" };
      const scheduled = now + Math.round(pauseMs * (1 + jitterShare * (2 * random() - 1)));
      const asked = verdict.retryAfter === undefined ? null : parseRetryAfter(verdict.retryAfter, now);
      return { kind: "retry", at: asked === null ? scheduled : Math.max(scheduled, asked) };
    },
  };
}

/**
 * The moment that a `Retry-After` header names, in seconds or as a date (RFC 9110, section 10.2.3), at most a day from
 * now; null when it is neither.
 */
export function parseRetryAfter(header: string, now: number): number | null {
  const value = header.trim();
  const at = /^\d+$/.test(value) ? now + Number(value) * 1000 : httpDate(value);
  return at === null ? null : Math.min(at, now + longestRetryAfterMs);
}

const namesZone = / (?:[A-Z]{3,4}|[+-]\d{4})$/;

/** One of the three forms of RFC 9110, section 5.6.7: that of asctime names no zone, and means UTC like the others. */
function httpDate(value: string): number | null {
  if (!/^[A-Z][a-z]{2,8},? /.test(value)) return null;
  const at = Date.parse(namesZone.test(value) ? value : `${value} GMT`);
  return Number.isNaN(at) ? null : at;
}
