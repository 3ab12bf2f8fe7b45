import { describe, expect, test } from "bun:test";
import { ingestOne } from "../support/api-server.ts";
import { connectRaw, statusOf } from "../support/raw-peer.ts";
import { serveEndpoints } from "../support/serve-endpoints.ts";
import { useServer } from "./scenario.ts";

/** Rules, section 3, and RFC 9112, section 3: a Host and a target that are none are refused before anything reads them. */

const local = useServer();
const open = useServer({ env: { POSTRIDER_PUBLIC_URL: "https://relay.example.com" } });

/** In latin1, so that every byte is its own. */
async function answerTo(url: string, head: string): Promise<{ status: number; body: string }> {
  const peer = await connectRaw(url);
  peer.write(Buffer.from(`${head}Connection: close\r\n\r\n`, "latin1"));
  const received = await peer.closed;
  return { status: statusOf(received), body: received.slice(received.indexOf("\r\n\r\n") + 4) };
}

const refused = (code: string) => ({
  status: 400,
  body: expect.stringMatching(new RegExp(`^{"message":"[^"]+\\.","code":"${code}"}$`)),
});

/** A page, an unknown path, and an endpoint that reads a body. */
const requests = ["GET /healthz", "GET /nothing", "DELETE /v1/tenants", "GET /v1/tenants/t1/status"];

describe.each([
  ["local", local],
  ["public", open],
] as const)("in %s mode", (_, server) => {
  test.each([
    ["nothing", ""],
    ["a path", "localhost/foo"],
    ["a query", "localhost?a"],
    ["a fragment", "localhost#a"],
    ["a user", "user:pass@localhost"],
    ["a space", "local host"],
    ["a backslash", "localhost\\a"],
    ["a list", "localhost, localhost"],
    ["two fields", "localhost\r\nHost: localhost"],
    ["a port beyond all ports", "localhost:99999"],
    ["a port of letters", "localhost:8x"],
    ["an address without its end", "[::1"],
    ["an address that is none", "[1:2]"],
    ["numbers that are no address", "256.256.256.256"],
    ["a name that no parser takes", "xn--localhost"],
    ["an escape", "a%41"],
    ["bytes beyond ASCII", "loc\xe4lhost"],
    ["8 KB", "a".repeat(8192)],
  ])("400 for a Host of %s, on every path", async (_, host) => {
    for (const request of requests) {
      expect(await answerTo(server().url, `${request} HTTP/1.1\r\nHost: ${host}\r\n`)).toEqual(refused("invalid_host"));
    }
  });

  test("400 without a Host, also in HTTP/1.0", async () => {
    expect(await answerTo(server().url, "GET /healthz HTTP/1.0\r\n")).toEqual(refused("invalid_host"));
    // That of HTTP/1.1 the listener answers by itself.
    expect(await answerTo(server().url, "GET /healthz HTTP/1.1\r\n")).toEqual({ status: 400, body: "" });
  });

  test.each([
    "CONNECT example.com:443",
    "CONNECT 127.0.0.1:443",
    "CONNECT /healthz",
    "GET /v1\\about",
    "GET /v1/events\\state/FAILED",
    "GET /v1/tenants/a\\b/status",
    "GET /v1/tenants/a%5Cb\\c/status",
    "GET /healthz\\",
    "GET /nothing\\at\\all",
    "DELETE /v1\\tenants",
    "GET /healthz?a=\\",
    "GET /healthz#a",
    "GET /healthz?a#b",
    "GET /v1/tenants/a#b/status",
  ])("400 for %s", async (request) => {
    expect(await answerTo(server().url, `${request} HTTP/1.1\r\nHost: localhost\r\n`)).toEqual(
      refused("invalid_target"),
    );
  });

  test.each([
    [200, "GET /healthz", "localhost:"],
    [200, "GET /healthz", "LOCALHOST:8080"],
    [200, "GET /healthz", "[::1]:8080"],
    [200, "GET http://localhost/healthz", "localhost"],
    [200, "GET /healthz?a=%5C%23", "localhost"],
    [200, "GET /healthz/", "localhost"],
    [404, "GET /v1/tenants/a%5Cb/status", "localhost"],
    [404, "GET /a/b/c/d/e/f/g/h/i", "localhost"],
    [404, "GET /v1/nothing", "localhost"],
    [405, "PUT /healthz", "localhost"],
    [405, "PATCH /v1/tenants", "localhost"],
  ] as const)("%i for %s with Host %s", async (status, request, host) => {
    expect((await answerTo(server().url, `${request} HTTP/1.1\r\nHost: ${host}\r\n`)).status).toBe(status);
  });

  test("nothing of it is in the log, and events are taken as before", async () => {
    const isExpected = (line: string) => line.includes('"server.started"') || line.includes('"request.answered"');
    expect(server().log.filter((line) => !isExpected(line))).toEqual([]);
    expect(await ingestOne(await server().account())).toMatch(/^evt_/);
  });
});

test("asterisk-form and no path at all are no requests to the listener", async () => {
  for (const target of ["*", "healthz", "\\healthz", "ftp://localhost/healthz"]) {
    const answer = await answerTo(local().url, `OPTIONS ${target} HTTP/1.1\r\nHost: localhost\r\n`);
    expect([target, answer]).toEqual([target, { status: 400, body: "" }]);
  }
});

describe("an error that nobody has caught", () => {
  const defect = {
    status: 500,
    body: '{"message":"The server failed to handle this request; the operator\'s log says why.","code":"internal_error"}',
  };

  test("before the router is answered in our form, and logged once without the source", async () => {
    const server = serveEndpoints([], {
      refuseCrossSite() {
        throw new Error("before");
      },
    });
    expect(await answerTo(server.url, "GET / HTTP/1.1\r\nHost: localhost\r\n")).toEqual(defect);
    expect(server.log).toEqual([expect.stringMatching(/"request\.failed","error":"Error: before\\n {4}at /)]);
    await server.stop();
  });

  test("in the handling of errors itself too", async () => {
    const log: string[] = [];
    const server = serveEndpoints([], {
      refuseCrossSite() {
        throw new Error("first");
      },
      log: {
        enabled: () => true,
        write(_level, event, { error } = {}) {
          if (log.push(`${event} ${String(error).split("\n")[0]}`) === 1) throw new Error("second");
        },
      },
    });
    expect(await answerTo(server.url, "GET / HTTP/1.1\r\nHost: localhost\r\n")).toEqual(defect);
    expect(log).toEqual(["request.failed Error: first", "request.failed Error: second"]);
    await server.stop();
  });
});

test.each([
  "/v1/tenants/%ff/status",
  "/v1/tenants/%ff/status/",
  "/v1/tenants/%c3%28/jwks.json/",
  "/v1/tenants/%/status/",
])("%s, whose part that is an id cannot be decoded, is not found", async (path) => {
  const { status, body } = await answerTo(local().url, `GET ${path} HTTP/1.1\r\nHost: localhost\r\n`);
  expect(status).toBe(404);
  expect(body).toContain('"code":"tenant_not_found"');
});
