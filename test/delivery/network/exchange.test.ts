import { afterAll, describe, expect, test } from "bun:test";
import type net from "node:net";
import { createAddressPolicy } from "../../../src/delivery/network/address.ts";
import { createTransport, type Transport, type TransportOptions } from "../../../src/delivery/network/transport.ts";
import { systemClock } from "../../../src/lib/clock.ts";
import { bodyOf, expectOutcome } from "../../support/expect-outcome.ts";
import { noResponse, responded } from "../../support/expected-outcome.ts";
import { answerOk, head, startHostileReceiver, write } from "../../support/hostile-receiver.ts";
import { createManualClock } from "../../support/manual-clock.ts";

const policy = createAddressPolicy({ localMode: true, allowTargets: [], ownListeners: [] });

const transports: Transport[] = [];
afterAll(() => {
  for (const transport of transports) transport.close();
});

function newTransport(options: Partial<TransportOptions> = {}): Transport {
  const transport = createTransport({ policy, clock: systemClock, timeoutMs: 5_000, ...options });
  transports.push(transport);
  return transport;
}

const requestTo = (url: string) => ({ url, headers: {}, body: Buffer.from("{}") });

describe("an answer", () => {
  async function answered(text: string) {
    const receiver = await startHostileReceiver({ onRequest: write(text) });
    const outcome = await newTransport().send(requestTo(`http://127.0.0.1:${receiver.port}/`));
    receiver.close();
    return outcome;
  }

  test.each([
    ["Retry-After: 120", "120"],
    ["retry-after: Wed, 21 Oct 2026 07:28:00 GMT", "Wed, 21 Oct 2026 07:28:00 GMT"],
    ["X-Other: 1", undefined],
  ])("with %s has the text %p for the retry", async (header, retryAfter) => {
    expect(await answered(head(503, header, "Content-Length: 0"))).toMatchObject({ status: 503, retryAfter });
  });

  test("that redirects is the answer", async () => {
    const target = await startHostileReceiver({});
    const location = `Location: http://127.0.0.1:${target.port}/`;
    for (const status of [301, 302, 303, 307, 308]) {
      expectOutcome(await answered(head(status, location, "Content-Length: 0")), responded(status));
    }
    expect(target.connections()).toBe(0);
    target.close();
  });

  test("is here with its head; its body is read beside it, the first 4 KiB of it kept", async () => {
    let peer: net.Socket | undefined;
    const receiver = await startHostileReceiver({
      onRequest(asking) {
        peer = asking;
        peer.write(head(200, "Content-Length: 6000"));
      },
    });
    const outcome = await newTransport().send(requestTo(`http://127.0.0.1:${receiver.port}/`));
    if (outcome.kind !== "responded") throw new Error("no response");
    expect(outcome.body.ended).toBe(false);
    expect(outcome.body.received()).toHaveLength(0);

    peer?.write("a".repeat(3000));
    peer?.write("b".repeat(3000));
    await outcome.body.done;
    expect(outcome.body.ended).toBe(true);
    expect(new TextDecoder().decode(outcome.body.received())).toBe("a".repeat(3000) + "b".repeat(1096));
    receiver.close();
  });

  test("that comes before the request has been read is here with its body, which ends when the rest has been sent", async () => {
    const sizeBytes = 16 * 2 ** 20;
    let read = 0;
    let goOn = () => {};
    const all = Promise.withResolvers<void>();
    const receiver = await startHostileReceiver({
      onConnection(peer) {
        peer.once("data", (first) => {
          read += first.length;
          peer.pause();
          peer.write(`${head(200, "Content-Length: 2")}ok`);
          goOn = () => {
            peer.on("data", (more) => {
              read += more.length;
              if (read > sizeBytes) all.resolve();
            });
            peer.resume();
          };
        });
      },
    });
    const request = { ...requestTo(`http://127.0.0.1:${receiver.port}/`), body: Buffer.alloc(sizeBytes) };
    const outcome = await newTransport().send(request);
    expect(outcome).toMatchObject({ kind: "responded", status: 200, body: { ended: false } });
    expect(read).toBeLessThan(sizeBytes);
    goOn();
    await all.promise;
    expect(await bodyOf(outcome)).toBe("ok");
    receiver.close();
  });

  test("of exactly 64 KiB is read whole, so that the connection can be used again", async () => {
    const receiver = await startHostileReceiver({
      onRequest: write(head(200, "Content-Length: 65536") + "a".repeat(65_536)),
    });
    const transport = newTransport();
    await bodyOf(await transport.send(requestTo(`http://127.0.0.1:${receiver.port}/`)));
    await bodyOf(await transport.send(requestTo(`http://127.0.0.1:${receiver.port}/`)));
    expect(receiver.connections()).toBe(1);
    receiver.close();
  });
});

describe("a body in crumbs", () => {
  const crumbs = (count: number) => Array.from({ length: count }, (_, n) => String(n % 10));
  const inChunks = (parts: readonly string[]) =>
    `${head(200, "Transfer-Encoding: chunked")}${parts.map((part) => `1\r\n${part}\r\n`).join("")}0\r\n\r\n`;

  test.each([
    ["of 1,024 is read whole, and the connection is used again", 1_024, 1_024, 1],
    ["of more is cut", 2_000, 1_025, 2],
  ])("%s", async (_title, sent, kept, connections) => {
    const receiver = await startHostileReceiver({ onRequest: write(inChunks(crumbs(sent))) });
    const transport = newTransport();
    for (let n = 0; n < 2; n += 1) {
      const outcome = await transport.send(requestTo(`http://127.0.0.1:${receiver.port}/`));
      expect(await bodyOf(outcome)).toBe(crumbs(kept).join(""));
    }
    expect(receiver.connections()).toBe(connections);
    receiver.close();
  });
});

describe("ending an attempt", () => {
  /** A receiver that tells when the request is in, and then does `then`. */
  async function startWaiting(then: (peer: net.Socket) => void = () => {}) {
    const asked = Promise.withResolvers<void>();
    const receiver = await startHostileReceiver({
      onRequest(peer) {
        then(peer);
        asked.resolve();
      },
    });
    return { receiver, asked: asked.promise, url: `http://127.0.0.1:${receiver.port}/` };
  }

  /** A signal that counts its listeners. */
  function createCountingSignal() {
    const controller = new AbortController();
    const { signal } = controller;
    let listeners = 0;
    const add = signal.addEventListener.bind(signal);
    const remove = signal.removeEventListener.bind(signal);
    signal.addEventListener = (type: string, listener: EventListenerObject) => {
      listeners++;
      add(type, listener);
    };
    signal.removeEventListener = (type: string, listener: EventListenerObject) => {
      listeners--;
      remove(type, listener);
    };
    return { controller, signal, listeners: () => listeners };
  }

  test("by the signal before it starts sends nothing", async () => {
    const { receiver, url } = await startWaiting();
    expectOutcome(await newTransport().send(requestTo(url), AbortSignal.abort()), noResponse("interrupted"));
    expect(receiver.connections()).toBe(0);
    receiver.close();
  });

  test("by the signal while it waits ends the connection", async () => {
    const { receiver, asked, url } = await startWaiting();
    const { controller, signal, listeners } = createCountingSignal();
    const outcome = newTransport().send(requestTo(url), signal);
    await asked;
    controller.abort();
    expectOutcome(await outcome, noResponse("interrupted"));
    await receiver.disconnected;
    expect(listeners()).toBeLessThanOrEqual(0);
    receiver.close();
  });

  test("by the signal within the body keeps what has come", async () => {
    const { receiver, url } = await startWaiting((peer) => peer.write(`${head(200, "Content-Length: 9")}part`));
    const controller = new AbortController();
    const outcome = await newTransport().send(requestTo(url), controller.signal);
    controller.abort();
    expect(await bodyOf(outcome)).toBe("part");
    await receiver.disconnected;
    receiver.close();
  });

  test("by an answer leaves no timer and no listener behind", async () => {
    const { receiver, url } = await startWaiting((peer) => answerOk(peer, 1));
    const { signal, listeners } = createCountingSignal();
    const { clock, timers } = createManualClock();
    const transport = newTransport({ clock });
    for (let i = 0; i < 20; i++) await bodyOf(await transport.send(requestTo(url), signal));
    transport.close();
    expect({ timers: timers.size, listeners: listeners() }).toEqual({ timers: 0, listeners: 0 });
    receiver.close();
  });

  test("by a failure leaves no timer and no listener behind", async () => {
    const { signal, listeners } = createCountingSignal();
    const { clock, timers } = createManualClock();
    const receiver = await startHostileReceiver({});
    receiver.close();
    const transport = newTransport({ clock });
    expectOutcome(
      await transport.send(requestTo(`http://127.0.0.1:${receiver.port}/`), signal),
      noResponse("connection_refused"),
    );
    expect({ timers: timers.size, listeners: listeners() }).toEqual({ timers: 0, listeners: 0 });
  });

  test("by a header that cannot be sent leaves no timer and no listener behind", async () => {
    const { signal, listeners } = createCountingSignal();
    const { clock, timers } = createManualClock();
    const { receiver, url } = await startWaiting();
    const request = { ...requestTo(url), headers: { Label: "a\r\nEvil: b" } };
    await expect(newTransport({ clock }).send(request, signal)).rejects.toThrow(TypeError);
    expect({ timers: timers.size, listeners: listeners() }).toEqual({ timers: 0, listeners: 0 });
    receiver.close();
  });

  test("after 10 s is the default", async () => {
    const { receiver, asked, url } = await startWaiting();
    const { clock, advance } = createManualClock();
    const transport = createTransport({ policy, clock });
    const outcome = transport.send(requestTo(url));
    await asked;
    advance(9_999);
    expect(Bun.peek.status(outcome)).toBe("pending");
    advance(1);
    expect(await outcome).toEqual({ kind: "no-response", cause: "timeout", durationMs: 10_000 });
    transport.close();
    receiver.close();
  });

  describe("after this process stood still", () => {
    async function stoodStill() {
      let peer: net.Socket | undefined;
      const { receiver, asked, url } = await startWaiting((asking) => {
        peer = asking;
      });
      const { clock, advance } = createManualClock();
      const transport = createTransport({ policy, clock });
      const outcome = transport.send(requestTo(url));
      await asked;
      advance(12_000);
      const end = () => {
        transport.close();
        receiver.close();
      };
      return { outcome, advance, answer: () => peer && answerOk(peer, 1), end };
    }

    test("takes the answer that came meanwhile", async () => {
      const { outcome, answer, end } = await stoodStill();
      answer();
      expect(await outcome).toMatchObject({ kind: "responded", status: 200 });
      end();
    });

    test("comes a second later without one", async () => {
      const { outcome, advance, end } = await stoodStill();
      advance(999);
      expect(Bun.peek.status(outcome)).toBe("pending");
      advance(1);
      expect(await outcome).toEqual({ kind: "no-response", cause: "timeout", durationMs: 13_000 });
      end();
    });
  });

  test("by closing the transport is an abort, for those in flight and those to come", async () => {
    const { receiver, asked, url } = await startWaiting();
    const transport = newTransport();
    const inFlight = transport.send(requestTo(url));
    await asked;
    transport.close();
    expectOutcome(await inFlight, noResponse("interrupted"));
    expectOutcome(await transport.send(requestTo(url)), noResponse("interrupted"));
    expect(receiver.connections()).toBe(1);
    receiver.close();
  });
});

describe("an address in the URL", () => {
  test("is judged anew when it may mean something else, also while a connection to it is kept", async () => {
    const receiver = await startHostileReceiver({ onRequest: write(head(200, "Content-Length: 0")) });
    let isOwn = false;
    const transport = newTransport({
      policy: {
        ...policy,
        checkAddress: () => (isOwn ? { ok: false, rule: "own_machine", message: "" } : { ok: true }),
        version: () => Number(isOwn),
      },
    });
    const send = () => transport.send(requestTo(`http://127.0.0.1:${receiver.port}/`));
    expectOutcome(await send(), responded(200));
    isOwn = true;
    expectOutcome(await send(), noResponse("address_not_public", "own machine"));
    isOwn = false;
    expectOutcome(await send(), responded(200));
    receiver.close();
  });

  test("is not dialled before it is known what it means, nor after an abort, the end of time or a close", async () => {
    const receiver = await startHostileReceiver({ onRequest: write(head(200, "Content-Length: 0")) });
    const url = `http://127.0.0.1:${receiver.port}/`;
    const learning = Promise.withResolvers<void>();
    const { clock, advance, timers } = createManualClock();
    const transport = newTransport({ clock, policy: { ...policy, learn: () => learning.promise } });
    const closing = newTransport({ policy: { ...policy, learn: () => learning.promise } });
    const controller = new AbortController();

    const aborted = transport.send(requestTo(url), controller.signal);
    controller.abort();
    expectOutcome(await aborted, noResponse("interrupted"));
    const late = transport.send(requestTo(url));
    advance(5_000);
    expectOutcome(await late, noResponse("timeout"));
    const closed = closing.send(requestTo(url));
    closing.close();
    const patient = transport.send(requestTo(url));
    learning.resolve();
    expectOutcome(await closed, noResponse("interrupted"));
    expectOutcome(await patient, responded(200));
    expect(receiver.connections()).toBe(1);
    transport.close();
    expect(timers.size).toBe(0);
    receiver.close();
  });
});
