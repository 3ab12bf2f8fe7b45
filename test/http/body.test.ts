import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { until } from "../support/api-server.ts";
import { abandon, exchange } from "../support/raw-connection.ts";
import { connectRaw } from "../support/raw-peer.ts";
import { startTestApp, type TestAccount, type TestApp } from "../support/test-app.ts";

let server: TestApp;
let account: TestAccount;
beforeAll(async () => {
  server = await startTestApp();
  account = await server.account();
});
afterAll(() => server.stop());

const event = '{"payload":{}}';

/** A request whose framing no HTTP client would write. */
const request = (fields: readonly string[], body: string) =>
  Buffer.from(
    [
      "POST /v1/ingest HTTP/1.1",
      "Host: localhost",
      `Authorization: Bearer ${account.apiKey}`,
      ...fields,
      "",
      body,
    ].join("\r\n"),
  );

describe("a length that is sent twice", () => {
  const send = (body: string) => {
    const length = `Content-Length: ${body.length}`;
    return exchange(server.url, [request([length, length, "Connection: close"], body)]);
  };

  test("counts for one", async () => {
    expect((await send(event)).map(({ status }) => status)).toEqual([202]);
  });

  test("is held against the limit as well", async () => {
    const answers = await send(event.padEnd(256 * 1024 + 1));
    expect(answers.map(({ status, bodyText }) => [status, JSON.parse(bodyText).code])).toEqual([
      [413, "body_too_large"],
    ]);
  });
});

const inPiece = 64 * 1024;

test("a client that is to end the connection learns that its body is too large", async () => {
  const body = event.padEnd(2 * 1024 * 1024);
  const bytes = request([`Content-Length: ${body.length}`, "Connection: close"], body);
  const pieces = Array.from({ length: Math.ceil(bytes.length / inPiece) }, (_, i) =>
    bytes.subarray(i * inPiece, (i + 1) * inPiece),
  );
  // Where bytes were left unread, the reset that follows overtakes the answer more often than not.
  for (let n = 0; n < 10; n += 1) {
    const answers = await exchange(server.url, pieces);
    expect(answers.map(({ status }) => status)).toEqual([413]);
  }
});

test("a client that goes on learns that its body is too large before it has sent it, and may ask again", async () => {
  const body = event.padEnd(2 * 1024 * 1024);
  const peer = await connectRaw(server.url);
  peer.write(request([`Content-Length: ${body.length}`], body.slice(0, 1)));
  await peer.until((received) => received.includes("body_too_large"));
  peer.write(body.slice(1));
  peer.write(request([`Content-Length: ${event.length}`, "Connection: close"], event));
  expect(await peer.closed).toMatch(/^HTTP\/1.1 413 .*HTTP\/1.1 202 /s);
});

test.each([
  ["with a length", "Content-Length: 100", '{"payl'],
  ["in chunks", "Transfer-Encoding: chunked", '5\r\n{"pay\r\n'],
  ["in broken chunks", "Transfer-Encoding: chunked", '5\r\n{"pay\r\nzz\r\n'],
])("a client that goes in the middle of a body %s is no failure of the server", async (_, framing, part) => {
  const metrics = async () => (await server.request("GET", "/metrics")).text;
  const counted = async () =>
    Number(
      /http_requests_total\{method="POST",route="\/v1\/ingest",status="400"\} (\d+)/.exec(await metrics())?.[1] ?? 0,
    );
  const before = await counted();
  await abandon(server.url, [request([framing], part)]);
  await until(counted, (count) => count > before);
  expect(server.log.filter((line) => line.includes('"request.failed"'))).toEqual([]);
});
