import { expect } from "bun:test";
import type { Outcome } from "../../src/delivery/network/transport.ts";
import type { Expected } from "./expected-outcome.ts";

/** Compares the outcome; a failure is compared whole, so that no detail is unexpected. */
export function expectOutcome(outcome: Outcome, expected: Expected): void {
  if (expected.kind === "responded") expect(outcome).toMatchObject({ kind: "responded", status: expected.status });
  else expect(outcome).toEqual({ ...expected, durationMs: expect.any(Number) });
}

/**
 * The time that hostile receivers may take in tests. Behaviours that should not use it up take a few milliseconds, or a
 * second where the machine does other things as well.
 */
export const testTimeoutMs = 3_000;

export function expectElapsed(elapsedMs: number, usesUpTheTime: boolean): void {
  // By the monotonic clock, timers may fire slightly early; a loaded machine makes everything late.
  if (usesUpTheTime) expect(elapsedMs).toBeWithin(testTimeoutMs - 5, 2 * testTimeoutMs);
  else expect(elapsedMs).toBeLessThan(testTimeoutMs - 20);
}

/** The body as text, once it has been read. */
export async function bodyOf(outcome: Outcome): Promise<string> {
  if (outcome.kind === "no-response") throw new Error(`no response: ${outcome.cause}`);
  await outcome.body.done;
  return new TextDecoder().decode(outcome.body.received());
}
