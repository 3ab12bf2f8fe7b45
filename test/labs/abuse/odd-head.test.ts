import { beforeAll, describe, expect, test } from "bun:test";
import { useServer } from "../../api/scenario.ts";
import { ingestOne } from "../../support/api-server.ts";
import { connectRaw, headOf, statusOf } from "../../support/raw-peer.ts";
import type { TestAccount } from "../../support/test-app.ts";

/**
 * Hazards, section 3: what no HTTP client sends. The listener answers it by itself, without our body and with the end of
 * the connection, so that nothing behind a misread head is taken for a second request.
 */

const server = useServer();
let ada: TestAccount;

beforeAll(async () => {
  ada = await server().account();
});

const login = "/v1/tenants/auth/login";
const get = (fields: string, target = "/healthz") => `GET ${target} HTTP/1.1\r\nHost: 127.0.0.1\r\n${fields}\r\n`;
const post = (fields: string, body = "") => `POST ${login} HTTP/1.1\r\nHost: 127.0.0.1\r\n${fields}\r\n${body}`;
const chunked = "Transfer-Encoding: chunked\r\n";

/** In latin1, so that every byte is its own. */
async function exchange(bytes: string): Promise<{ status: number; received: string }> {
  const peer = await connectRaw(server().url);
  peer.write(Buffer.from(bytes, "latin1"));
  const received = await peer.closed;
  return { status: statusOf(received), received };
}

describe("the connection ends with", () => {
  test.each([
    [431, "a target of 20,000 bytes", get("", `/${"a".repeat(20_000)}`)],
    [431, "a field of 20,000 bytes", get(`X-A: ${"a".repeat(20_000)}\r\n`)],
    [431, "300 fields", get("X-A: b\r\n".repeat(300))],
    [400, "a line that is no field", get("Nonsense\r\n")],
    [400, "a NUL in a field", get("X-A: a\0b\r\n")],
    [400, "a carriage return in a field", get("X-A: a\rX-B: c\r\n")],
    [400, "a field over two lines", get("X-A: a\r\n b\r\n")],
    [400, "a space before the colon", get("X-A : a\r\n")],
    [400, "an empty line before the request", `\r\n${get("")}`],
    [400, "no Host", "GET /healthz HTTP/1.1\r\n\r\n"],
    [505, "lines without carriage returns", get("").replaceAll("\r", "")],
    [505, "HTTP/0.9", "GET /healthz\r\n\r\n"],
    [505, "HTTP/9.9", get("").replace("1.1", "9.9")],
    [400, "the preface of HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"],
    [400, "a greeting of TLS", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n"],
    [400, "two lengths", post("Content-Length: 2\r\nContent-Length: 40\r\n", `{}${get("", "/v1/about")}`)],
    [400, "a length and chunks", post(`Content-Length: 5\r\n${chunked}`, `0\r\n\r\n${get("", "/v1/about")}`)],
    [400, "another transfer coding", post("Transfer-Encoding: gzip\r\n", "{}")],
    [400, "one that ends like chunked", post("Transfer-Encoding: xchunked\r\n", "0\r\n\r\n")],
    [400, "a negative length", post("Content-Length: -1\r\n", "{}")],
    [400, "a length with a sign", post("Content-Length: +2\r\n", "{}")],
    [400, "a hexadecimal length", post("Content-Length: 0x2\r\n", "{}")],
    [400, "a length beyond all numbers", post("Content-Length: 99999999999999999999\r\n", "{}")],
    [413, "a length beyond the listener's limit", post("Content-Length: 9000000\r\n", "{}")],
    [400, "a chunk without a size", post(chunked, "zz\r\n{}\r\n0\r\n\r\n")],
    [400, "a chunk beyond all numbers", post(chunked, "FFFFFFFFFFFFFFFF\r\n{}\r\n0\r\n\r\n")],
  ] as const)("%i after %s", async (status, _, bytes) => {
    const answer = await exchange(bytes);
    expect(answer.status).toBe(status);
    expect(answer.received.split("HTTP/1.1 ")).toHaveLength(2);
    expect(answer.received).not.toMatch(/\bat |\.ts|bun|elysia/i);
  });

  test.each(["BREW", "get", "Post"])("nothing after the unknown method %s", async (method) => {
    expect(await exchange(get("").replace("GET", method))).toEqual({ status: 0, received: "" });
  });
});

test.each([
  ["100-continue", "HTTP/1.1 100 Continue\r\n\r\n"],
  // Names of expectations have no case (RFC 9110, section 10.1.1); to the listener these are none, so the client waits.
  ["100-Continue", ""],
  ["100-CONTINUE", ""],
] as const)("before the body of a request with Expect: %s comes %j", async (expectation, interim) => {
  const peer = await connectRaw(server().url);
  peer.write(post(`Expect: ${expectation}\r\nContent-Length: 2\r\nConnection: close\r\n`));
  if (interim !== "") await peer.until((text) => text === interim);
  peer.write("{}");
  const received = await peer.closed;
  expect(received.startsWith(`${interim}HTTP/1.1 400 `)).toBe(true);
  expect(received).toContain('"code":"field_required"');
});

test.each([
  [404, "a target with a line break in it", "/healthz%0d%0aSet-Cookie:%20a=b"],
  [404, "a target that climbs", "/v1/../../etc/passwd"],
  [404, "an asset that climbs", "/assets/..%2f..%2f..%2fetc/passwd"],
  [404, "a target with bytes beyond ASCII", "/v1/tenants/\xc3\xa9/status"],
  [404, "a target with a NUL", "/v1/tenants/%00/status"],
  [401, "a target with a broken escape", "/v1/events/%zz"],
  [200, "another host in the target, as proxies write it", "http://example.com/healthz"],
  [200, "a query of 15,000 bytes", `/healthz?${"a=1&".repeat(3_750)}`],
] as const)("%i for %s, and no field of the answer is the client's", async (status, _, target) => {
  const { status: got, received } = await exchange(get("Connection: close\r\n", target));
  const [head = ""] = received.split("\r\n\r\n");
  expect([got, head.match(/set-cookie|example\.com|passwd/i)]).toEqual([status, null]);
});

test.each([
  ["Authorization", "Bearer ", 401],
  ["Idempotency-Key", "", 400],
  ["Last-Event-ID", "", 200],
] as const)("a field %s of 14,000 bytes is answered by ourselves", async (name, prefix, status) => {
  const { jwt, apiKey } = ada;
  const isStream = name === "Last-Event-ID";
  const fields = {
    Authorization: `Bearer ${isStream ? jwt : apiKey}`,
    "Content-Length": isStream ? "0" : "14",
    [name]: `${prefix}${"x".repeat(14_000)}`,
  };
  const peer = await connectRaw(server().url);
  const [method, path] = isStream ? ["GET", "/v1/stream"] : ["POST", "/v1/ingest"];
  peer.write(`${headOf(method, path, fields)}\r\n${isStream ? "" : '{"payload":{}}'}`);
  const received = await peer.until((text) => text.includes("\r\n\r\n"));
  peer.reset();
  expect(statusOf(received)).toBe(status);
});

test("after all of it the server answers as before and has logged no defect", async () => {
  expect(await ingestOne(ada)).toMatch(/^evt_/);
  expect(server().log.filter((line) => /"level":"(error|warn)"/.test(line))).toEqual([]);
});
