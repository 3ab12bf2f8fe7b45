import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type net from "node:net";
import { createAddressPolicy } from "../../../src/delivery/network/address.ts";
import { createTransport } from "../../../src/delivery/network/transport.ts";
import { systemClock } from "../../../src/lib/clock.ts";
import { createAuthority } from "../../support/certificates.ts";
import { bodyOf, expectElapsed, expectOutcome, testTimeoutMs } from "../../support/expect-outcome.ts";
import { noResponse, responded } from "../../support/expected-outcome.ts";
import { type HostileRow, quickBehaviours, slowBehaviours } from "../../support/hostile-behaviours.ts";
import {
  answerOk,
  type Behaviour,
  type HostileReceiverOptions,
  head,
  never,
  startHostileReceiver,
  writeAndEnd,
} from "../../support/hostile-receiver.ts";

const authority = createAuthority("Test authority");
const certificate = authority.issue({ hosts: ["127.0.0.1"] });
const policy = createAddressPolicy({ localMode: true, allowTargets: [], ownListeners: [] });
const body = Buffer.from('{"eventId":"evt_1"}');

/** One for all: that none of them harms the others is part of the test. */
const transport = createTransport({ policy, clock: systemClock, timeoutMs: testTimeoutMs, extraCa: authority.cert });

const unseen: unknown[] = [];
const noteUnseen = (error: unknown) => void unseen.push(error);
beforeAll(() => {
  process.on("uncaughtException", noteUnseen);
  process.on("unhandledRejection", noteUnseen);
});
afterAll(() => {
  transport.close();
  process.off("uncaughtException", noteUnseen);
  process.off("unhandledRejection", noteUnseen);
});

for (const scheme of ["http", "https"] as const) {
  const check = checkOver(scheme);
  describe.concurrent(`over ${scheme}, a receiver that`, () => {
    test.each(slowBehaviours(150))("%s", check);
  });
  // One after the other: a flood takes the processor, and the clock runs for the others.
  describe(`over ${scheme}, a receiver that`, () => {
    test.each(quickBehaviours)("%s", check);
  });
}

function checkOver(scheme: "http" | "https") {
  return async (...[_title, onRequest, expected, { sent = body, ...rest } = {}]: HostileRow) => {
    const receiver = await start(scheme, { onRequest, ...rest });
    const started = performance.now();
    const url = `${scheme}://127.0.0.1:${receiver.port}/hook`;
    const outcome = await transport.send({ url, headers: {}, body: sent });
    const elapsedMs = performance.now() - started;

    expectOutcome(outcome, expected);
    const usesUpTheTime = expected.kind === "no-response" && expected.cause === "timeout";
    expectElapsed(elapsedMs, usesUpTheTime);
    expect(Math.abs(outcome.durationMs - elapsedMs)).toBeLessThan(testTimeoutMs);
    if (outcome.kind === "responded" && expected.kind === "responded") {
      await outcome.body.done;
      expect(outcome.body.ended).toBe(true);
      expectBody(outcome.body.received(), expected.kept);
      if (expected.bodyEnds !== undefined) {
        expectElapsed(performance.now() - started, expected.bodyEnds === "with the time");
      }
      if (expected.isCut) {
        await receiver.disconnected;
        expectElapsed(performance.now() - started, false);
      }
    }
    receiver.close();
  };
}

for (const scheme of ["http", "https"] as const) {
  describe(`over ${scheme}, a receiver that kept the connection and`, () => {
    const sendTwice = async (second: Behaviour, onNewConnection: Behaviour = answerOk) => {
      let first: net.Socket | undefined;
      const receiver = await start(scheme, {
        onRequest(peer, nth) {
          first ??= peer;
          if (peer !== first) onNewConnection(peer, nth);
          else if (nth === 1) answerOk(peer, nth);
          else second(peer, nth);
        },
      });
      const request = { url: `${scheme}://127.0.0.1:${receiver.port}/hook`, headers: {}, body };
      await bodyOf(await transport.send(request));
      const outcome = await transport.send(request);
      receiver.close();
      return { outcome, connections: receiver.connections(), requests: receiver.requests() };
    };

    test.each<[string, Behaviour]>([
      ["resets it", (peer) => void peer.resetAndDestroy()],
      ["ends it", (peer) => void peer.end()],
    ])("%s as the next request comes is asked again, on a new one", async (_title, second) => {
      const { outcome, connections, requests } = await sendTwice(second);
      expectOutcome(outcome, responded(200));
      expect({ connections, requests }).toEqual({ connections: 2, requests: 3 });
    });

    test("ends it again and again is asked only once more", async () => {
      const hangUp: Behaviour = (peer) => void peer.end();
      const { outcome, connections, requests } = await sendTwice(hangUp, hangUp);
      expectOutcome(outcome, noResponse("connection_reset"));
      expect({ connections, requests }).toEqual({ connections: 2, requests: 3 });
    });

    test("ends it after the first byte of the answer is not asked again", async () => {
      const { outcome, connections, requests } = await sendTwice(writeAndEnd("H"));
      expectOutcome(outcome, noResponse("connection_reset"));
      expect({ connections, requests }).toEqual({ connections: 1, requests: 2 });
    });

    test("does not answer on it in time is not asked again", async () => {
      const { outcome, connections, requests } = await sendTwice(never);
      expectOutcome(outcome, noResponse("timeout"));
      expect({ connections, requests }).toEqual({ connections: 1, requests: 2 });
    });

    test("writes on it unasked loses it, and the next answer is its own", async () => {
      let kept: net.Socket | undefined;
      const receiver = await start(scheme, {
        onRequest(peer, nth) {
          kept ??= peer;
          answerOk(peer, nth);
        },
      });
      const request = { url: `${scheme}://127.0.0.1:${receiver.port}/hook`, headers: {}, body };
      await bodyOf(await transport.send(request));
      kept?.write(head(500, "Content-Length: 0"));
      await receiver.disconnected;
      expectOutcome(await transport.send(request), responded(200));
      expect(receiver.connections()).toBe(2);
      receiver.close();
    });
  });
}

test("a receiver where nothing listens refuses the connection", async () => {
  const receiver = await startHostileReceiver({});
  receiver.close();
  for (const scheme of ["http", "https"]) {
    const outcome = await transport.send({ url: `${scheme}://127.0.0.1:${receiver.port}/hook`, headers: {}, body });
    expectOutcome(outcome, noResponse("connection_refused"));
  }
});

test("after all of them the process still delivers, and nothing was thrown unseen", async () => {
  const receiver = await startHostileReceiver({});
  const outcome = await transport.send({ url: `http://127.0.0.1:${receiver.port}/hook`, headers: {}, body });
  expect(await bodyOf(outcome)).toBe("ok");
  expect(unseen).toEqual([]);
  receiver.close();
});

const start = (scheme: "http" | "https", options: HostileReceiverOptions) =>
  startHostileReceiver({ ...options, tls: scheme === "https" ? certificate : undefined });

function expectBody(received: Uint8Array, kept: string | number | undefined) {
  if (typeof kept === "string") expect(new TextDecoder().decode(received)).toBe(kept);
  if (typeof kept === "number") expect(received.length).toBe(kept);
}
