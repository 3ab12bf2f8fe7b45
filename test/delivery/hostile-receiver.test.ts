import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type net from "node:net";
import { createAddressPolicy } from "../../src/delivery/address.ts";
import { createTransport } from "../../src/delivery/transport.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { createAuthority } from "../support/certificates.ts";
import {
  bodyOf,
  type Expected,
  expectElapsed,
  expectReply,
  noResponse,
  responded,
  testTimeoutMs,
} from "../support/expect-reply.ts";
import {
  answerOk,
  type Behaviour,
  flood,
  gzipBomb,
  type HostileReceiverOptions,
  head,
  never,
  startHostileReceiver,
  trickle,
  write,
  writeAndEnd,
  writeAndReset,
} from "../support/hostile-receiver.ts";

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

type Row = [
  title: string,
  behaviour: Behaviour,
  expected: Expected,
  options?: { sent?: Uint8Array; onConnection?: (peer: net.Socket) => void },
];

const chunked = head(200, "Transfer-Encoding: chunked");

/** What takes its time, and all of it. */
const slowRows: Row[] = [
  ["accepts the request and never answers", never, noResponse("timeout")],
  [
    "sends one header line at a time",
    trickle("HTTP/1.1 200 OK\r\n", 20, (n) => `X-${n}: a\r\n`),
    noResponse("timeout"),
  ],
  ["sends one 1xx answer at a time", trickle("", 20, () => head(102)), noResponse("timeout")],
  [
    "never reads the request",
    never,
    noResponse("timeout"),
    { sent: Buffer.alloc(16 * 1024 * 1024, "a"), onConnection: (peer) => void peer.pause() },
  ],
  [
    "sends one body byte at a time",
    trickle(head(200, "Content-Length: 1000"), 20, () => "a"),
    responded(200, { bodyEnds: "with the time" }),
  ],
  [
    "answers and stalls in the body",
    write(`${head(200, "Content-Length: 1000")}partial`),
    responded(200, { kept: "partial", bodyEnds: "with the time" }),
  ],
];

/** What is over at once. */
const rows: Row[] = [
  // Size.
  [
    "sends 2 MB of headers",
    write(head(200, `X: ${"a".repeat(2_000_000)}`)),
    noResponse("protocol", "response headers are larger than 16 KiB"),
  ],
  [
    "sends headers without end",
    flood("HTTP/1.1 200 OK\r\n", "X: aaaaaaaa\r\n"),
    noResponse("protocol", "response headers are larger than 16 KiB"),
  ],
  ["sends 1xx answers without end", flood("", head(102)), noResponse("protocol")],
  [
    "sends a body without end",
    flood(head(200), "a".repeat(1000)),
    responded(200, { kept: 4096, bodyEnds: "at once", isCut: true }),
  ],
  [
    "sends chunks without end",
    flood(chunked, "5\r\nhello\r\n"),
    responded(200, { kept: 4096, bodyEnds: "at once", isCut: true }),
  ],
  [
    "sends a chunk extension without end",
    flood(`${chunked}2;`, "a".repeat(1000)),
    responded(200, { kept: "", bodyEnds: "at once" }),
  ],
  [
    "sends trailers without end",
    flood(`${chunked}0\r\n`, "X: aaaaaaaa\r\n"),
    responded(200, { kept: "", bodyEnds: "at once" }),
  ],
  ["sends a gzip bomb", write(gzipBomb()), responded(200, { kept: 4096, bodyEnds: "at once" })],

  // The connection.
  ["resets without an answer", (peer) => peer.resetAndDestroy(), noResponse("reset")],
  ["hangs up without an answer", (peer) => void peer.end(), noResponse("reset")],
  ["resets within the status line", writeAndReset("HTTP/1.1 2"), noResponse("reset")],
  ["hangs up within the head", writeAndEnd("HTTP/1.1 200 OK\r\nX: a"), noResponse("reset")],
  [
    "resets within the body",
    writeAndReset(`${head(200, "Content-Length: 1000")}part`),
    responded(200, { bodyEnds: "at once" }),
  ],
  [
    "hangs up within the body",
    writeAndEnd(`${head(200, "Content-Length: 1000")}part`),
    responded(200, { kept: "part", bodyEnds: "at once" }),
  ],
  ["ends the body by hanging up", writeAndEnd(`${head(200)}all`), responded(200, { kept: "all", bodyEnds: "at once" })],

  // The protocol.
  [
    "answers after fifty 1xx answers",
    write(`${head(102).repeat(50)}${head(200, "Content-Length: 2")}ok`),
    responded(200, { kept: "ok" }),
  ],
  [
    "sends two Content-Lengths",
    write(`${head(200, "Content-Length: 2", "Content-Length: 3")}ok`),
    noResponse("protocol", "response has more than one Content-Length"),
  ],
  [
    "sends a length for chunks",
    write(`${head(200, "Transfer-Encoding: chunked", "Content-Length: 3")}0\r\n\r\n`),
    noResponse("protocol"),
  ],
  [
    "sends a wrong chunk size",
    write(`${chunked}zz\r\nhello\r\n0\r\n\r\n`),
    responded(200, { kept: "", bodyEnds: "at once" }),
  ],
  [
    "sends a wrong chunk size later",
    write(`${chunked}2\r\nok\r\nzz\r\n`),
    responded(200, { kept: "ok", bodyEnds: "at once" }),
  ],
  [
    "sends a chunk longer than its size",
    write(`${chunked}2\r\nokay\r\n0\r\n\r\n`),
    responded(200, { kept: "ok", bodyEnds: "at once" }),
  ],
  ["answers in HTTP/0.9", writeAndEnd("<html>hello</html>"), noResponse("protocol")],
  ["answers in HTTP/1.0", writeAndEnd("HTTP/1.0 200 OK\r\n\r\nhello"), responded(200, { kept: "hello" })],
  ["answers in HTTP/2", write(Buffer.from("0000000400000000000000", "hex")), noResponse("protocol")],
  ["answers with another protocol's greeting", write("SSH-2.0-OpenSSH_9.9\r\n"), noResponse("protocol")],
  ["ends lines without a carriage return", write("HTTP/1.1 200 OK\nContent-Length: 0\n\n"), noResponse("protocol")],
  ["sends a status of two digits", write("HTTP/1.1 20 OK\r\n\r\n"), noResponse("protocol")],
  ["sends a status of four digits", write("HTTP/1.1 2000 OK\r\n\r\n"), noResponse("protocol")],
  ["sends a status below 100", write(head("099", "Content-Length: 0")), noResponse("protocol")],
  ["sends a status nobody knows", write(head(799, "Content-Length: 0")), responded(799)],
  ["sends a 204 with a body", write(`${head(204, "Content-Length: 5")}hello`), responded(204, { kept: "" })],
  ["switches protocols unasked", write(head(101, "Connection: upgrade", "Upgrade: websocket")), noResponse("protocol")],
  ["switches protocols without saying to which", write(head(101)), noResponse("protocol")],
  [
    "answers twice",
    write(`${head(200, "Content-Length: 0")}${head(500, "Content-Length: 0")}`),
    responded(200, { kept: "" }),
  ],
  ["sends NUL bytes in a header", write(head(200, "X: a\0b", "Content-Length: 0")), noResponse("protocol")],
  [
    "answers before the request is whole, and hangs up",
    never,
    responded(413, { kept: "" }),
    {
      sent: Buffer.alloc(16 * 1024 * 1024, "a"),
      onConnection: (peer) =>
        void peer.once("data", () => peer.end(head(413, "Content-Length: 0", "Connection: close"))),
    },
  ],
];

for (const scheme of ["http", "https"] as const) {
  const check = checkOver(scheme);
  describe.concurrent(`over ${scheme}, a receiver that`, () => {
    test.each(slowRows)("%s", check);
  });
  // One after the other: a flood takes the processor, and the clock runs for the others.
  describe(`over ${scheme}, a receiver that`, () => {
    test.each(rows)("%s", check);
  });
}

function checkOver(scheme: "http" | "https") {
  return async (...[_title, onRequest, expected, { sent = body, ...rest } = {}]: Row) => {
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
      expectReply(reply, noResponse("reset"));
      expect({ connections, requests }).toEqual({ connections: 2, requests: 3 });
    });

    test("ends it after the first byte of the answer is not asked again", async () => {
      const { reply, connections, requests } = await sendTwice(writeAndEnd("H"));
      expectReply(reply, noResponse("reset"));
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
    expectReply(reply, noResponse("refused"));
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
