import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type net from "node:net";
import { createAddressPolicy } from "../../../src/delivery/network/address.ts";
import { createTransport } from "../../../src/delivery/network/transport.ts";
import { systemClock } from "../../../src/lib/clock.ts";
import { createAuthority } from "../../support/certificates.ts";
import { bodyOf, expectElapsed, expectReply, testTimeoutMs } from "../../support/expect-reply.ts";
import { noResponse, responded } from "../../support/expected-reply.ts";
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
    test.each(slowBehaviours(20))("%s", check);
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
    const reply = await transport.send({ url, headers: {}, body: sent });
    const elapsedMs = performance.now() - started;

    expectReply(reply, expected);
    const usesUpTheTime = expected.kind === "no-response" && expected.cause === "timeout";
    expectElapsed(elapsedMs, usesUpTheTime);
    expect(Math.abs(reply.durationMs - elapsedMs)).toBeLessThan(100);
    if (reply.kind === "responded" && expected.kind === "responded") {
      await reply.body.done;
      expect(reply.body.ended).toBe(true);
      expectBody(reply.body.received(), expected.kept);
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
      const reply = await transport.send(request);
      receiver.close();
      return { reply, connections: receiver.connections(), requests: receiver.requests() };
    };

    test.each<[string, Behaviour]>([
      ["resets it", (peer) => void peer.resetAndDestroy()],
      ["ends it", (peer) => void peer.end()],
    ])("%s as the next request comes is asked again, on a new one", async (_title, second) => {
      const { reply, connections, requests } = await sendTwice(second);
      expectReply(reply, responded(200));
      expect({ connections, requests }).toEqual({ connections: 2, requests: 3 });
    });

    test("ends it again and again is asked only once more", async () => {
      const hangUp: Behaviour = (peer) => void peer.end();
      const { reply, connections, requests } = await sendTwice(hangUp, hangUp);
      expectReply(reply, noResponse("connection_reset"));
      expect({ connections, requests }).toEqual({ connections: 2, requests: 3 });
    });

    test("ends it after the first byte of the answer is not asked again", async () => {
      const { reply, connections, requests } = await sendTwice(writeAndEnd("H"));
      expectReply(reply, noResponse("connection_reset"));
      expect({ connections, requests }).toEqual({ connections: 1, requests: 2 });
    });

    test("does not answer on it in time is not asked again", async () => {
      const { reply, connections, requests } = await sendTwice(never);
      expectReply(reply, noResponse("timeout"));
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
      expectReply(await transport.send(request), responded(200));
      expect(receiver.connections()).toBe(2);
      receiver.close();
    });
  });
}

test("a receiver where nothing listens refuses the connection", async () => {
  const receiver = await startHostileReceiver({});
  receiver.close();
  for (const scheme of ["http", "https"]) {
    const reply = await transport.send({ url: `${scheme}://127.0.0.1:${receiver.port}/hook`, headers: {}, body });
    expectReply(reply, noResponse("connection_refused"));
  }
});

test("after all of them the process still delivers, and nothing was thrown unseen", async () => {
  const receiver = await startHostileReceiver({});
  const reply = await transport.send({ url: `http://127.0.0.1:${receiver.port}/hook`, headers: {}, body });
  expect(await bodyOf(reply)).toBe("ok");
  expect(unseen).toEqual([]);
  receiver.close();
});

const start = (scheme: "http" | "https", options: HostileReceiverOptions) =>
  startHostileReceiver({ ...options, tls: scheme === "https" ? certificate : undefined });

function expectBody(received: Uint8Array, kept: string | number | undefined) {
  if (typeof kept === "string") expect(new TextDecoder().decode(received)).toBe(kept);
  if (typeof kept === "number") expect(received.length).toBe(kept);
}
