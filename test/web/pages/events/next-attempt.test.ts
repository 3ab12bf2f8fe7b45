import { expect, test } from "bun:test";
import { type NextAttempt, nextAttemptOf } from "../../../../web/pages/events/next-attempt.ts";

const now = Date.parse("2026-03-01T12:00:00.000Z");

test.each<[at: string | null, isPaused: boolean, next: NextAttempt]>([
  ["2026-03-01T12:00:05.000Z", false, "later"],
  ["2026-03-01T12:00:00.000Z", false, "now"],
  // It may be under way, and time out.
  ["2026-03-01T11:59:45.000Z", false, "now"],
  ["2026-03-01T11:59:44.999Z", false, "turn"],
  ["2026-03-01T12:00:05.000Z", true, "paused"],
  ["2026-03-01T11:00:00.000Z", true, "paused"],
  [null, false, "now"],
])("a delivery that is due at %s (paused: %p) goes: %s", (at, isPaused, next) => {
  expect(nextAttemptOf(at, now, isPaused)).toBe(next);
});
