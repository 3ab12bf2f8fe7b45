import { describe, expect, test } from "bun:test";
import * as v from "valibot";
import { createAnswers } from "../../src/http/answers.ts";
import { createBodyRoom } from "../../src/http/body-room.ts";
import { endpoint, ok } from "../../src/http/endpoint.ts";
import { createResponder } from "../../src/http/respond.ts";
import { createProxyWarning } from "../../src/http/untrusted-proxy.ts";
import { createLog } from "../../src/lib/log.ts";
import { createFakeClock } from "../support/fake-clock.ts";

const proxy = "192.0.2.7";

const withKey = endpoint(
  {
    ...{ method: "GET", path: "/x", tag: "Events", summary: "Answer", access: "api_key" },
    responses: { 200: { description: "Ok.", schema: v.object({}), example: {} } },
  },
  () => ok({}),
);

/** A server whose clients all have an API key, at the usual level of the log, and how often it has asked for an address. */
function setUp(trustedProxies: readonly string[]) {
  const clock = createFakeClock();
  const lines: { event: string; address: string }[] = [];
  const log = createLog({
    level: "info",
    format: "json",
    now: clock.now,
    out: (line) => void lines.push(JSON.parse(line)),
  });
  let asked = 0;
  const respond = createResponder({
    authenticate: () => ({}),
    clientAddress: (address) => address,
    onForwarded: createProxyWarning(trustedProxies, log),
    bodyRoom: createBodyRoom(),
    answers: createAnswers({ clock, log, largestEntryBytes: 0 }),
    log,
  });
  const call = async (headers: Record<string, string>) => {
    const socketAddress = () => {
      asked += 1;
      return proxy;
    };
    await respond(withKey, { request: new Request("http://localhost/x", { headers }), params: {}, socketAddress });
  };
  return { call, lines, asked: () => asked };
}

describe("a proxy through which only requests with an API key come", () => {
  test.each<[string, readonly string[], Record<string, string>, { asked: number; warned: string[] }]>([
    ["is told of once when it is not trusted", [], { "X-Forwarded-For": "203.0.113.9" }, { asked: 1, warned: [proxy] }],
    ["is not told of when it is trusted", [proxy], { "X-Forwarded-For": "203.0.113.9" }, { asked: 1, warned: [] }],
    ["is not looked for without its header", [], {}, { asked: 0, warned: [] }],
  ])("%s", async (_, trusted, headers, expected) => {
    const { call, lines, asked } = setUp(trusted);
    for (let i = 0; i < 5; i++) await call(headers);
    const warned = lines.filter(({ event }) => event === "proxy.untrusted").map(({ address }) => address);
    expect({ asked: asked(), warned }).toEqual(expected);
  });
});
