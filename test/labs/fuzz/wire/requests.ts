import { gzipSync } from "node:zlib";
import type { Random } from "../../../../src/lib/random.ts";
import { createJsonTexts } from "../../../support/json-text.ts";

/** Bytes for one connection, and what has to become of them. */
export interface WireCase {
  readonly what: string;
  readonly method: string;
  readonly path: string;
  readonly pieces: readonly Uint8Array[];
  /**
   * `accepted`: every payload is stored, each by an answer of its own; `refused`: one documented error; `broken`: no HTTP,
   * so one bare error of the listener or none; `cut`: the client goes before its request has ended. Nothing is stored of
   * the last three.
   */
  readonly outcome: "accepted" | "refused" | "broken" | "cut";
  readonly payloads: readonly string[];
}

/** What is sent as it should be, and is none of the JSON that was wanted. */
interface WrongBody {
  readonly what: string;
  readonly body: Buffer;
  readonly fields?: readonly string[];
}

export interface WireTokens {
  readonly apiKey: string;
  readonly jwt: string;
}

/** Makes cases without end, out of random numbers. */
export function createWireCases(random: Random, { apiKey, jwt }: WireTokens) {
  const { between, chance, pick } = random;
  const { object, space } = createJsonTexts(random);
  const bytesOf = (text: string) => Buffer.from(text, "utf8");

  const head = (line: string, token: string, fields: readonly string[], isLast = true) =>
    [
      `${line}`,
      "Host: localhost",
      `Authorization: Bearer ${token}`,
      ...fields,
      ...(isLast ? ["Connection: close"] : []),
    ]
      .map((field) => `${field}\r\n`)
      .join("")
      .concat("\r\n");

  /** As one write, byte by byte, or something between. */
  function splitted(bytes: Buffer): Buffer[] {
    if (chance(0.4)) return [bytes];
    const most = bytes.length < 600 && chance(0.3) ? 1 : Math.ceil(bytes.length / between(2, 12));
    const pieces: Buffer[] = [];
    for (let at = 0; at < bytes.length; ) {
      const end = at + between(1, most);
      pieces.push(bytes.subarray(at, end));
      at = end;
    }
    return pieces;
  }

  /** RFC 9112, section 7.1: sizes in either case of hexadecimal, with zeros in front or not. */
  function chunked(body: Buffer): Buffer {
    const parts: Buffer[] = [];
    for (let at = 0; at < body.length; ) {
      const chunk = body.subarray(at, at + between(1, Math.max(1, Math.ceil(body.length / 4))));
      const size = chunk.length.toString(16);
      const written = `${chance(0.1) ? "00" : ""}${chance(0.5) ? size.toUpperCase() : size}`;
      parts.push(bytesOf(`${written}\r\n`), chunk, bytesOf("\r\n"));
      at += chunk.length;
    }
    return Buffer.concat([...parts, bytesOf("0\r\n\r\n")]);
  }

  /** A request as it should be, in any of the ways in which it may be. */
  function framed(line: string, token: string, body: Buffer, more: readonly string[] = [], isLast = true): Buffer {
    const isChunked = chance(0.4) && !line.endsWith("1.0");
    const length = `Content-Length: ${body.length}`;
    const framing = isChunked ? ["Transfer-Encoding: chunked"] : chance(0.1) ? [length, length] : [length];
    const start = bytesOf(head(line, token, [...framing, ...more], isLast));
    return Buffer.concat([start, isChunked ? chunked(body) : body]);
  }

  const single = (payload: string) => bytesOf(`${space()}{${space()}"payload":${space()}${payload}}${space()}`);
  const types: readonly [readonly string[], ...(readonly string[])[]] = [
    [],
    ["Content-Type: application/json"],
    ["content-type:application/json; charset=utf-8"],
    ["Content-Type: application/cloudevents+json", "Expect: 100-continue"],
    ["X-Strange: \u00ff\t;=,", "Accept: */*"],
  ];

  function right(): WireCase {
    const path = "/v1/ingest";
    const base = { method: "POST", path, outcome: "accepted" } as const;
    if (chance(0.2)) {
      const payloads = Array.from({ length: between(1, 4) }, object);
      const body = bytesOf(`{"events":[${payloads.map((payload) => `{"payload":${payload}}`).join(",")}]}`);
      const bytes = framed("POST /v1/ingest/batch HTTP/1.1", apiKey, body, pick(types));
      return { ...base, path: "/v1/ingest/batch", what: "a batch", pieces: splitted(bytes), payloads };
    }
    const payload = object();
    const line = pick(["POST /v1/ingest HTTP/1.1", "POST /v1/ingest?a=%ff&b HTTP/1.1", "POST /v1/ingest HTTP/1.0"]);
    const bytes = framed(line, apiKey, single(payload), pick(types));
    return { ...base, what: "an event", pieces: splitted(bytes), payloads: [payload] };
  }

  function wrongBody(): WrongBody {
    const body = single(object());
    const at = between(0, body.length - 1);
    const levels = between(65, 100_000);
    return pick<() => WrongBody>([
      () => ({ what: "a byte order mark", body: Buffer.concat([bytesOf("\ufeff"), body]) }),
      () => ({ what: "UTF-16", body: Buffer.from(body.toString("utf8"), "utf16le") }),
      () => ({ what: "UTF-16, the other way round", body: Buffer.from(body.toString("utf8"), "utf16le").swap16() }),
      () => ({ what: "gzip that says so", body: gzipSync(body), fields: ["Content-Encoding: gzip"] }),
      () => ({ what: "gzip that does not", body: gzipSync(body) }),
      () => ({ what: "a form", body, fields: ["Content-Type: application/x-www-form-urlencoded"] }),
      () => ({
        what: `${levels} arrays`,
        body: bytesOf(`{"payload":{"a":${"[".repeat(levels)}${"]".repeat(levels)}}}`),
      }),
      () => ({ what: `${levels} open arrays`, body: bytesOf("[".repeat(levels)) }),
      () => ({ what: "many objects", body: bytesOf(`{"payload":${'{"a":'.repeat(between(65, 40_000))}1`) }),
      () => ({ what: "the first part of an event", body: body.subarray(0, body.lastIndexOf("}")).subarray(0, at) }),
      () => ({
        what: "a byte that is in no UTF-8",
        body: Buffer.concat([body.subarray(0, at), Buffer.of(0xff), body.subarray(at)]),
      }),
      () => ({ what: "something after it", body: Buffer.concat([body, bytesOf(pick(["}", ",", "{}", "\0", "//"]))]) }),
      () => ({ what: "more than there may be", body: Buffer.concat([body, Buffer.alloc(256 * 1024, 0x20)]) }),
      () => ({
        what: "random bytes",
        body: Buffer.from(Array.from({ length: between(1, 60) }, () => between(0, 255))),
      }),
    ])();
  }

  function refused(): WireCase {
    const { what, body, fields = [] } = wrongBody();
    // Those who read JSON with the platform's parser have to take the same.
    const [method, path, token] = chance(0.7)
      ? (["POST", "/v1/ingest", apiKey] as const)
      : (["PUT", "/v1/tenants/webhooks", jwt] as const);
    const bytes = framed(`${method} ${path} HTTP/1.1`, token, body, fields);
    return { what, method, path, pieces: splitted(bytes), outcome: "refused", payloads: [] };
  }

  /** Two ways to say where a request ends, or none; a second request waits behind the place where one of them does. */
  function broken(): WireCase {
    const body = single(object());
    const length = `Content-Length: ${body.length}`;
    const other = between(0, 9);
    const hidden = framed("POST /v1/ingest HTTP/1.1", apiKey, single(object()));
    const inChunks = "Transfer-Encoding: chunked";
    const line = "POST /v1/ingest HTTP/1.1";
    const make = (what: string, fields: readonly string[], content: Buffer = body, first = line): [string, Buffer] => [
      what,
      Buffer.concat([Buffer.from(head(first, apiKey, fields, chance(0.5)), "latin1"), content, hidden]),
    ];
    const empty = bytesOf("0\r\n\r\n");
    const [what, bytes] = pick<() => [string, Buffer]>([
      () => make("a length and chunks", [`Content-Length: ${body.length}`, inChunks], empty),
      () => make("chunks and a length", [inChunks, `Content-Length: ${between(0, 20)}`], empty),
      () =>
        make("two lengths", chance(0.5) ? [length, `Content-Length: ${other}`] : [`Content-Length: ${other}`, length]),
      () => make("a list of lengths", [`${length}, ${body.length}`]),
      () =>
        make("no length", [`Content-Length: ${pick(["+5", "-1", "0x10", "1e1", "", "5 5", "5;", "9".repeat(20)])}`]),
      () => make("space before the colon", [length.replace(":", pick([" :", "\t:"]))]),
      () =>
        make(
          "another encoding",
          [`Transfer-Encoding: ${pick(["gzip, chunked", "xchunked", "chunked, chunked", "\x0bchunked"])}`],
          chunked(body),
        ),
      () => make("two encodings", [inChunks, "Transfer-Encoding: identity"], chunked(body)),
      () =>
        make(
          "no size of a chunk",
          [inChunks],
          bytesOf(`${pick(["zz", "-1", "0x5", "fffffffffffffffff"])}\r\n{"payload":{}}\r\n0\r\n\r\n`),
        ),
      () => make("a chunk that goes on", [inChunks], bytesOf('3\r\n{"payload":{}}\r\n0\r\n\r\n')),
      () => make("a folded field", [length, "X-A: b\r\n c"]),
      () => make("a field with a zero byte", [length, "X-A: b\0c"]),
      () => make("a long head", [length, `X-A: ${"a".repeat(between(17_000, 60_000))}`]),
      () => make("many fields", [length, ...Array.from({ length: 300 }, (_, i) => `X-${i}: b`)]),
      () =>
        make(
          "another version",
          [length],
          body,
          `POST /v1/ingest ${pick(["HTTP/3.0", "HTTP/0.9", "HTTP/1.", "http/1.1", "ICY"])}`,
        ),
      () => [
        "another protocol",
        Buffer.from(
          pick(["160301020001000200", "505249202a20485454502f322e300d0a0d0a534d0d0a0d0a", "0001020304fffe0d0a0d0a"]),
          "hex",
        ),
      ],
    ])();
    return { what, method: "POST", path: "/v1/ingest", pieces: splitted(bytes), outcome: "broken", payloads: [] };
  }

  function cut(): WireCase {
    const bytes = framed("POST /v1/ingest HTTP/1.1", apiKey, bytesOf(`{"payload":${object()}}`));
    // The closing brace is the eighth byte from the end where the body is in chunks.
    const pieces = splitted(bytes.subarray(0, between(1, bytes.length - 8)));
    return { what: "a client that goes", method: "POST", path: "/v1/ingest", pieces, outcome: "cut", payloads: [] };
  }

  return (): WireCase => pick([right, right, refused, broken, broken, cut])();
}
