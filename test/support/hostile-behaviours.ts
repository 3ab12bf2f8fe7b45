import type net from "node:net";
import { type Expected, noResponse, responded } from "./expected-outcome.ts";
import {
  type Behaviour,
  flood,
  gzipBomb,
  head,
  never,
  trickle,
  write,
  writeAndEnd,
  writeAndReset,
} from "./hostile-receiver.ts";

/**
 * What receivers do that no well-behaved library lets a server do, and the outcome that an attempt must have (hazards,
 * section 4). Run against the transport alone with a short timeout, and against the whole server with the real one.
 */
export type HostileRow = [
  title: string,
  behaviour: Behaviour,
  expected: Expected,
  options?: { sent?: Uint8Array; onConnection?: (peer: net.Socket) => void },
];

const chunked = head(200, "Transfer-Encoding: chunked");

/**
 * Behaviours that use up all of an attempt's time.
 * @param everyMs the pause between two bytes or lines
 */
export const slowBehaviours = (everyMs: number): HostileRow[] => [
  ["accepts the request and never answers", never, noResponse("timeout")],
  [
    "sends one header line at a time",
    trickle("HTTP/1.1 200 OK\r\n", everyMs, (n) => `X-${n}: a\r\n`),
    noResponse("timeout"),
  ],
  ["sends one 1xx answer at a time", trickle("", everyMs, () => head(102)), noResponse("timeout")],
  [
    "never reads the request",
    never,
    noResponse("timeout"),
    { sent: Buffer.alloc(16 * 1024 * 1024, "a"), onConnection: (peer) => void peer.pause() },
  ],
  [
    "answers at the first bytes of the request and reads no further",
    never,
    responded(200, { kept: "ok", bodyEnds: "with the time" }),
    {
      sent: Buffer.alloc(16 * 1024 * 1024, "a"),
      onConnection: (peer) =>
        void peer.once("data", () => peer.pause().write(`${head(200, "Content-Length: 2", "Connection: close")}ok`)),
    },
  ],
  [
    "sends one body byte at a time",
    trickle(head(200, "Content-Length: 1000"), everyMs, () => "a"),
    responded(200, { bodyEnds: "with the time" }),
  ],
  [
    "answers and stalls in the body",
    write(`${head(200, "Content-Length: 1000")}partial`),
    responded(200, { kept: "partial", bodyEnds: "with the time" }),
  ],
];

/** Behaviours that are over immediately. */
export const quickBehaviours: HostileRow[] = [
  // Size.
  [
    "sends 2 MB of headers",
    write(head(200, `X: ${"a".repeat(2_000_000)}`)),
    noResponse("protocol_error", "response headers are larger than 16 KiB"),
  ],
  [
    "sends headers without end",
    flood("HTTP/1.1 200 OK\r\n", "X: aaaaaaaa\r\n"),
    noResponse("protocol_error", "response headers are larger than 16 KiB"),
  ],
  ["sends 1xx answers without end", flood("", head(102)), noResponse("protocol_error")],
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
    "answers before it has read the request, and then sends bytes without end",
    never,
    responded(200, { kept: "ok", bodyEnds: "at once" }),
    {
      sent: Buffer.alloc(16 * 1024 * 1024, "a"),
      onConnection: (peer) =>
        void peer.once("data", () => {
          peer.pause();
          flood(`${head(200, "Content-Length: 2")}ok`, "a".repeat(1000))(peer, 1);
        }),
    },
  ],
  [
    "sends empty lines without end instead of an answer",
    flood("", "\r\n"),
    noResponse("protocol_error", "response is larger than 512 KiB"),
  ],
  [
    "sends a chunk size of zeros without end",
    flood(chunked, "0"),
    responded(200, { kept: "", bodyEnds: "at once", isCut: true }),
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
  ["resets without an answer", (peer) => peer.resetAndDestroy(), noResponse("connection_reset")],
  ["hangs up without an answer", (peer) => void peer.end(), noResponse("connection_reset")],
  ["resets within the status line", writeAndReset("HTTP/1.1 2"), noResponse("connection_reset")],
  ["hangs up within the head", writeAndEnd("HTTP/1.1 200 OK\r\nX: a"), noResponse("connection_reset")],
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
    noResponse("protocol_error", "response has more than one Content-Length"),
  ],
  [
    "sends a length for chunks",
    write(`${head(200, "Transfer-Encoding: chunked", "Content-Length: 3")}0\r\n\r\n`),
    noResponse("protocol_error"),
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
  ["answers in HTTP/0.9", writeAndEnd("<html>hello</html>"), noResponse("protocol_error")],
  ["answers in HTTP/1.0", writeAndEnd("HTTP/1.0 200 OK\r\n\r\nhello"), responded(200, { kept: "hello" })],
  ["answers in HTTP/2", write(Buffer.from("0000000400000000000000", "hex")), noResponse("protocol_error")],
  ["answers with another protocol's greeting", write("SSH-2.0-OpenSSH_9.9\r\n"), noResponse("protocol_error")],
  [
    "ends lines without a carriage return",
    write("HTTP/1.1 200 OK\nContent-Length: 0\n\n"),
    noResponse("protocol_error"),
  ],
  ["sends a status of two digits", write("HTTP/1.1 20 OK\r\n\r\n"), noResponse("protocol_error")],
  ["sends a status of four digits", write("HTTP/1.1 2000 OK\r\n\r\n"), noResponse("protocol_error")],
  ["sends a status below 100", write(head("099", "Content-Length: 0")), noResponse("protocol_error")],
  ["sends a status nobody knows", write(head(799, "Content-Length: 0")), responded(799)],
  ["sends a 204 with a body", write(`${head(204, "Content-Length: 5")}hello`), responded(204, { kept: "" })],
  [
    "switches protocols unasked",
    write(head(101, "Connection: upgrade", "Upgrade: websocket")),
    noResponse("protocol_error"),
  ],
  ["switches protocols without saying to which", write(head(101)), noResponse("protocol_error")],
  [
    "answers twice",
    write(`${head(200, "Content-Length: 0")}${head(500, "Content-Length: 0")}`),
    responded(200, { kept: "" }),
  ],
  ["sends NUL bytes in a header", write(head(200, "X: a\0b", "Content-Length: 0")), noResponse("protocol_error")],
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
