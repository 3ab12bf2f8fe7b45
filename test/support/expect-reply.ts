import { expect } from "bun:test";
import type { Reply } from "../../src/delivery/network/transport.ts";
import type { Expected } from "./expected-reply.ts";

/** Compares the outcome; a failure whole, so that no detail comes unexpected. */
export function expectReply(reply: Reply, expected: Expected): void {
  if (expected.kind === "responded") expect(reply).toMatchObject({ kind: "responded", status: expected.status });
  else expect(reply).toEqual({ ...expected, durationMs: expect.any(Number) });
}

/** What hostile receivers may cost in tests; everything that is not to use it up has to be much faster. */
export const testTimeoutMs = 400;

export function expectElapsed(elapsedMs: number, usesUpTheTime: boolean): void {
  // Timers may fire a little early by the monotonic clock; a loaded machine makes everything late.
  if (usesUpTheTime) expect(elapsedMs).toBeWithin(testTimeoutMs - 5, testTimeoutMs + 1_000);
  else expect(elapsedMs).toBeLessThan(testTimeoutMs - 20);
}

/** The body as text, once it has been read. */
export async function bodyOf(reply: Reply): Promise<string> {
  if (reply.kind === "no-response") throw new Error(`no response: ${reply.cause}`);
  await reply.body.done;
  return new TextDecoder().decode(reply.body.received());
}
