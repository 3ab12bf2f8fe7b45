import { describe, expect, test } from "bun:test";
import type { TestApp } from "../support/test-app.ts";
import { provenSections, useServer } from "./scenario.ts";

provenSections.add("rules 3");

/** What a page of somebody else can send through a visitor's browser, and what our own pages send (Fetch Metadata). */

const local = useServer({ env: { POSTRIDER_PAYMENTS: "sandbox" } });
const open = useServer({
  env: { POSTRIDER_PUBLIC_URL: "https://relay.example.com", POSTRIDER_PAYMENTS: "sandbox" },
});
const servers = [
  ["local", local],
  ["public", open],
] as const;

const refusal = { message: expect.stringMatching(/POSTRIDER_PUBLIC_URL/), code: "cross_site" };
const portOf = ({ url }: TestApp) => new URL(url).port;
const accountsOf = async ({ request, operatorToken: token }: TestApp) =>
  (await request("GET", "/operator/tenants", { token })).body.total;

describe.each(servers)("in %s mode", (_, server) => {
  test.each([
    ["another site", { Origin: "https://evil.example", "Sec-Fetch-Site": "cross-site" }],
    ["another site, of a browser without Sec-Fetch-Site", { Origin: "https://evil.example" }],
    ["another site that says no origin", { "Sec-Fetch-Site": "cross-site" }],
    ["a frame without an origin", { Origin: "null", "Sec-Fetch-Site": "cross-site" }],
    ["a frame without an origin, of a browser without Sec-Fetch-Site", { Origin: "null" }],
    ["another port of this machine", { Origin: "http://localhost:3000", "Sec-Fetch-Site": "same-site" }],
    ["another name of the domain", { Origin: "https://blog.example.com", "Sec-Fetch-Site": "same-site" }],
    ["a neighbour that says no origin", { "Sec-Fetch-Site": "same-site" }],
    ["the public name without TLS", { Origin: "http://relay.example.com" }],
    ["a name that begins like ours", { Origin: "https://relay.example.com.evil.example" }],
    ["a name that only resolves to this machine", { Origin: "http://evil.localhost.example:8080" }],
    ["two origins", { Origin: "https://relay.example.com, https://evil.example" }],
    ["what is no origin", { Origin: "relay.example.com" }],
    ["an extension", { Origin: "chrome-extension://abcdefghijklmnop" }],
  ])("403 for %s, and nothing is done", async (_, headers) => {
    const before = await accountsOf(server());
    for (const [method, path] of [
      ["POST", "/v1/tenants"],
      ["POST", "/v1/tenants/auth/login"],
      ["PUT", "/v1/tenants/webhooks"],
      ["DELETE", "/v1/tenants"],
      ["PATCH", "/v1/tenants"],
      ["POST", "/pay/callback"],
      ["POST", "/nothing"],
    ] as const) {
      const answer = await server().request(method, path, { headers });
      expect([method, path, answer.status, answer.body]).toEqual([method, path, 403, refusal]);
      expect([...answer.headers.keys()].filter((name) => name.startsWith("access-control"))).toEqual([]);
    }
    expect(await accountsOf(server())).toBe(before);
  });

  test("403 also with a session: nobody else's page has one by right", async () => {
    const account = await server().account();
    const headers = { Origin: "https://evil.example", Authorization: `Bearer ${account.jwt}` };
    expect((await server().request("DELETE", "/v1/tenants", { headers })).body).toEqual(refusal);
    expect((await account.get("/v1/tenants/me")).status).toBe(200);
  });

  test.each([
    ["no browser", {}],
    ["a browser's own address line", { "Sec-Fetch-Site": "none" }],
    ["a form of our own page", { Origin: "null", "Sec-Fetch-Site": "same-origin" }],
    ["our own page, which says only that", { "Sec-Fetch-Site": "same-origin" }],
  ])("201 from %s", async (_, headers) => {
    expect((await server().request("POST", "/v1/tenants", { headers })).status).toBe(201);
  });

  test.each(["localhost", "127.0.0.1", "[::1]"])(
    "201 from a page under http://%s and the listener's port",
    async (host) => {
      for (const site of ["same-origin", "same-site"]) {
        const headers = { Origin: `http://${host}:${portOf(server())}`, "Sec-Fetch-Site": site };
        expect((await server().request("POST", "/v1/tenants", { headers })).status).toBe(201);
      }
    },
  );

  test("201 from a page under the port that is forwarded to the listener", async () => {
    const headers = { Origin: "http://localhost:9000", Host: "localhost:9000" };
    expect((await server().request("POST", "/v1/tenants", { headers })).status).toBe(201);
  });

  test("reading is as open as before, and a page of another site may not look at it", async () => {
    const headers = { Origin: "https://evil.example", "Sec-Fetch-Site": "cross-site" };
    for (const [method, path, status] of [
      ["GET", "/v1/about", 200],
      ["GET", "/docs", 200],
      ["HEAD", "/healthz", 200],
      ["OPTIONS", "/v1/tenants", 405],
    ] as const) {
      const answer = await server().request(method, path, { headers });
      expect([path, answer.status]).toEqual([path, status]);
      expect([...answer.headers.keys()].filter((name) => name.startsWith("access-control"))).toEqual([]);
    }
  });

  test("the sandbox's page is paid from its own address, which it keeps out of Origin", async () => {
    const body = { tier: "pro", name: "Ada", email: "ada@example.com", password: "Corr3ct#Horse" };
    const made = await server().request("POST", "/v1/tenants", { body });
    const { pathname } = new URL(made.body.payment_url);
    const page = await server().request("GET", pathname);
    const form = new URL(page.headers.get("location") ?? "").pathname;
    const pay = (headers: Record<string, string>) =>
      server().request("POST", form, {
        body: "card=4084084084084081",
        headers: { "Content-Type": "application/x-www-form-urlencoded", ...headers },
      });
    expect((await pay({ Origin: "https://evil.example" })).body).toEqual(refusal);
    expect((await pay({ Origin: "null", "Sec-Fetch-Site": "cross-site" })).body).toEqual(refusal);
    expect((await pay({ Origin: "null" })).status).toBe(303);
  });
});

test("201 from the dashboard under the public address", async () => {
  for (const site of [{}, { "Sec-Fetch-Site": "same-origin" }]) {
    const headers = { Origin: "https://relay.example.com", ...site };
    expect((await open().request("POST", "/v1/tenants", { headers })).status).toBe(201);
  }
});
