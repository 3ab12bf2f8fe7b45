import { afterAll, describe, expect, test } from "bun:test";
import { createAddressPolicy } from "../../../src/delivery/network/address.ts";
import { createTransport } from "../../../src/delivery/network/transport.ts";
import { systemClock } from "../../../src/lib/clock.ts";
import { createAuthority } from "../../support/certificates.ts";
import { expectElapsed, expectOutcome, testTimeoutMs } from "../../support/expect-outcome.ts";
import { startHostileReceiver } from "../../support/hostile-receiver.ts";
import { handshakeBehaviours, tlsBehaviours } from "../../support/hostile-tls-behaviours.ts";
import { canRenegotiate, renegotiations, startRenegotiatingReceiver } from "../../support/renegotiating-receiver.ts";

const authority = createAuthority("Test authority");
const policy = createAddressPolicy({ localMode: true, allowTargets: [], ownListeners: [] });
const body = Buffer.from('{"eventId":"evt_1"}');

const transport = createTransport({ policy, clock: systemClock, timeoutMs: testTimeoutMs, extraCa: authority.cert });
afterAll(() => transport.close());

describe("a receiver whose TLS", () => {
  test.each(tlsBehaviours(authority))("%s", async (_title, options, expected) => {
    const receiver = await startHostileReceiver({ tls: options });
    const outcome = await transport.send({ url: `https://127.0.0.1:${receiver.port}/hook`, headers: {}, body });
    expectOutcome(outcome, expected);
    expectElapsed(outcome.durationMs, false);
    expect(receiver.requests()).toBe(expected.kind === "responded" ? 1 : 0);
    receiver.close();
  });

  test.each(handshakeBehaviours)("handshake %s", async (_title, onConnection, expected) => {
    const receiver = await startHostileReceiver({ onConnection });
    const outcome = await transport.send({ url: `https://127.0.0.1:${receiver.port}/hook`, headers: {}, body });
    expectOutcome(outcome, expected);
    expectElapsed(outcome.durationMs, expected.kind === "no-response" && expected.cause === "timeout");
    receiver.close();
  });

  test.skipIf(!canRenegotiate).each(renegotiations)("%s", async (_title, how, expected) => {
    const receiver = await startRenegotiatingReceiver(authority.issue({ hosts: ["127.0.0.1"] }), how);
    const outcome = await transport.send({ url: `https://127.0.0.1:${receiver.port}/hook`, headers: {}, body });
    expectOutcome(outcome, expected);
    receiver.close();
  });
});
