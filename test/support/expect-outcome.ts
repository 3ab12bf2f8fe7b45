import { expect } from "bun:test";
import type { Outcome } from "../../src/delivery/network/transport.ts";
import type { Expected } from "./expected-outcome.ts";

/** Compares the outcome; a failure whole, so that no detail comes unexpected. */
export function expectOutcome(outcome: Outcome, expected: Expected): void {
  if (expected.kind === "responded") expect(outcome).toMatchObject({ kind: "responded", status: expected.status });
  else expect(outcome).toEqual({ ...expected, durationMs: expect.any(Number) });
}

/**
 * What hostile receivers may cost in tests. What is not to use it up takes some milliseconds, and where the machine does
 * other things as well a second.
 */
export const testTimeoutMs = 3_000;

export function expectElapsed(elapsedMs: number, usesUpTheTime: boolean): void {
  // Timers may fire a little early by the monotonic clock; a loaded machine makes everything late.
  if (usesUpTheTime) expect(elapsedMs).toBeWithin(testTimeoutMs - 5, 2 * testTimeoutMs);
  else expect(elapsedMs).toBeLessThan(testTimeoutMs - 20);
}

/** The body as text, once it has been read. */
export async function bodyOf(outcome: Outcome): Promise<string> {
  if (outcome.kind === "no-response") throw new Error(`no response: ${outcome.cause}`);
  await outcome.body.done;
  return new TextDecoder().decode(outcome.body.received());
}
