import { afterAll, describe, expect, test } from "bun:test";
import { createFakeClock } from "../support/fake-clock.ts";
import { startTestApp, type TestApp } from "../support/test-app.ts";
import { provenSections, useServer } from "./scenario.ts";

provenSections.add("rules 17");

/** Rules, section 17: the operator in a browser. */

const path = "/operator/session";
const listPath = "/operator/nodes";

const local = useServer();
const open = useServer({ env: { POSTRIDER_PUBLIC_URL: "https://relay.example.com" } });

const signIn = (server: TestApp, token = server.operatorToken, headers?: Record<string, string>) =>
  server.request("POST", path, { body: { token }, ...(headers && { headers }) });

/** `name=value`, as a browser sends it back. */
async function cookieOf(server: TestApp): Promise<string> {
  const { headers } = await signIn(server);
  return headers.get("set-cookie")?.split(";")[0] ?? "";
}

const read = async (server: TestApp, cookie: string) =>
  (await server.request("GET", listPath, { headers: { Cookie: cookie } })).status;

describe("the operator's cookie", () => {
  test.each([
    ["over http on this machine", local, /^postrider-operator=\d+\.[\w-]{43}; /, []],
    ["under a public https address", open, /^__Secure-postrider-operator=\d+\.[\w-]{43}; /, ["Secure"]],
  ] as const)("%s is kept from scripts and from other sites, for 12 hours", async (_, server, name, more) => {
    const before = Date.now();
    const { status, body, headers, text } = await signIn(server());
    const [cookie = ""] = headers.getSetCookie();
    expect([status, headers.getSetCookie().length]).toEqual([200, 1]);
    expect(cookie).toMatch(name);
    expect(cookie.split("; ").slice(1)).toEqual([
      "Path=/operator",
      "Max-Age=43200",
      "HttpOnly",
      "SameSite=Strict",
      ...more,
    ]);
    const lifetimeMs = Date.parse(body.expires_at) - before;
    expect(Math.abs(lifetimeMs - 43_200_000)).toBeLessThan(60_000);
    expect(headers.get("cache-control")).toContain("no-store");
    for (const answer of [text, cookie]) expect(answer).not.toContain(server().operatorToken.slice(-16));
    expect(await read(server(), cookie.split(";")[0] ?? "")).toBe(200);
  });

  test("is good for the operator's endpoints, and for nothing else", async () => {
    const cookie = await cookieOf(local());
    expect(await read(local(), `theme=dark; ${cookie}; x`)).toBe(200);
    for (const other of ["/v1/tenants/me", "/v1/events", "/v1/tenants/api-keys"])
      expect((await local().request("GET", other, { headers: { Cookie: cookie } })).status).toBe(401);
    expect((await open().request("GET", "/metrics", { headers: { Cookie: await cookieOf(open()) } })).status).toBe(401);
  });

  test.each([
    ["none", () => ""],
    ["another name", (cookie: string) => cookie.replace("postrider-operator", "postrider-tenant")],
    ["a later end", (cookie: string) => cookie.replace(/=\d+/, "=99999999999")],
    ["another signature", (cookie: string) => cookie.replace(/.$/, (last) => (last === "A" ? "Q" : "A"))],
    ["no signature", (cookie: string) => cookie.replace(/\..*$/, "")],
    ["an empty signature", (cookie: string) => cookie.replace(/\..*$/, ".")],
    ["a number that is none", (cookie: string) => cookie.replace(/=\d+/, "=1e12")],
    ["the token itself", () => `postrider-operator=${local().operatorToken}`],
  ])("is refused with %s", async (_, change) => {
    expect(await read(local(), change(await cookieOf(local())))).toBe(401);
  });

  test("does not help a wrong token along", async () => {
    const headers = { Cookie: await cookieOf(local()), Authorization: "Bearer svc_op_wrong" };
    expect((await local().request("GET", listPath, { headers })).status).toBe(401);
  });

  test.each([
    ["our own page", () => ({ Origin: local().url, "Sec-Fetch-Site": "same-origin" }), 200],
    ["no page", () => ({}), 401],
    ["another port of this machine", () => ({ Origin: "http://localhost:3000", "Sec-Fetch-Site": "same-site" }), 403],
    ["another site", () => ({ Origin: "https://evil.example", "Sec-Fetch-Site": "cross-site" }), 403],
  ])("changes something only from our own page: %s", async (_, origin, status) => {
    const headers = { Cookie: await cookieOf(local()), ...origin() };
    expect((await local().request("POST", "/operator/resume", { headers })).status).toBe(status);
  });

  test("is refused once the token has been rotated", async () => {
    const server = await startTestApp();
    const cookie = await cookieOf(server);
    await server.request("POST", "/operator/token/rotate", { token: server.operatorToken });
    expect(await read(server, cookie)).toBe(401);
    await server.stop();
  });

  test("is refused when its 12 hours are over", async () => {
    const clock = createFakeClock();
    const server = await startTestApp({ clock });
    const cookie = await cookieOf(server);
    clock.step(43_199_000);
    expect(await read(server, cookie)).toBe(200);
    clock.step(1_000);
    expect(await read(server, cookie)).toBe(401);
    await server.stop();
  });

  test("is taken away by signing out, whoever was signed in", async () => {
    for (const headers of [{ Cookie: await cookieOf(open()) }, {}]) {
      const answer = await open().request("DELETE", path, { headers });
      expect(answer.status).toBe(204);
      expect(answer.headers.getSetCookie()).toEqual([
        "__Secure-postrider-operator=; Path=/operator; Max-Age=0; HttpOnly; SameSite=Strict; Secure",
      ]);
    }
  });
});

describe("signing in as the operator", () => {
  test.each([
    ["a wrong token", { token: "svc_op_wrong" }, 401, "wrong_operator_token"],
    ["an empty token", { token: " " }, 400, "invalid_request"],
    ["no token", {}, 400, "field_required"],
    ["a number", { token: 1 }, 400, "invalid_request"],
  ])("with %s is refused, and sets no cookie", async (_, body, status, code) => {
    const answer = await local().request("POST", path, { body });
    expect([answer.status, answer.body.code]).toEqual([status, code]);
    expect(answer.headers.getSetCookie()).toEqual([]);
  });

  test("is refused to a page of another site, also with the right token", async () => {
    const headers = { Origin: "https://evil.example", "Sec-Fetch-Site": "cross-site" };
    const answer = await signIn(local(), local().operatorToken, headers);
    expect([answer.status, answer.headers.getSetCookie()]).toEqual([403, []]);
  });

  test("is limited to 10 failures in 15 minutes from one address; a right token is none", async () => {
    const server = await startTestApp({
      env: { POSTRIDER_PUBLIC_URL: "https://relay.example.com", POSTRIDER_TRUSTED_PROXIES: "127.0.0.1/32" },
    });
    afterAll(() => server.stop());
    const from = (address: string) => ({ "X-Forwarded-For": address });
    for (let right = 0; right < 12; right += 1)
      expect((await signIn(server, server.operatorToken, from("192.0.2.1"))).status).toBe(200);
    const guesses = await Promise.all(
      Array.from({ length: 12 }, (_, n) => signIn(server, `svc_op_${n}`, from("192.0.2.1"))),
    );
    expect(guesses.map(({ status }) => status).toSorted()).toEqual([...Array(10).fill(401), 429, 429]);
    const late = await signIn(server, server.operatorToken, from("192.0.2.1"));
    expect([late.status, late.body.code]).toEqual([429, "too_many_logins"]);
    expect(Number(late.headers.get("retry-after"))).toBeGreaterThan(800);
    expect((await signIn(server, server.operatorToken, from("192.0.2.2"))).status).toBe(200);
  });

  test("and out is in the log with the address, and so is what failed; the token and the cookie never are", async () => {
    const server = await startTestApp();
    const cookie = await cookieOf(server);
    await signIn(server, "svc_op_wrong");
    await server.request("DELETE", path, { headers: { Cookie: cookie } });
    const told = server.log
      .map((line) => JSON.parse(line))
      .filter(({ event }) => event.startsWith("operator."))
      .map(({ event, act, by, access, address }) => [event, act ?? access, by, address]);
    expect(told).toEqual([
      ["operator.acted", "sign in", "operator in a browser", "127.0.0.1"],
      ["operator.refused", "operator", undefined, "127.0.0.1"],
      ["operator.acted", "sign out", "operator in a browser", "127.0.0.1"],
    ]);
    for (const secret of [server.operatorToken, "svc_op_wrong", cookie.split("=")[1] ?? ""])
      expect(server.log.join("\n")).not.toContain(secret);
    expect((await server.request("GET", "/metrics")).text).toContain(
      'postrider_failed_logins_total{kind="operator"} 1',
    );
    await server.stop();
  });
});

describe("the operator's page", () => {
  test("has the headers of the dashboard's, and a script of its own", async () => {
    const [page, dashboard] = await Promise.all(["/operator", "/"].map((at) => local().request("GET", at)));
    if (!page || !dashboard) throw new Error("No answer");
    // In a checkout in which the dashboard was not built both say so.
    expect(page.status).toBe(dashboard.status);
    for (const name of ["content-security-policy", "cache-control", "referrer-policy", "x-content-type-options"])
      expect(page.headers.get(name)).toBe(dashboard.headers.get(name));
    if (page.status !== 200) return;
    const scriptOf = (text: string) => /\/assets\/[\w-]+\.js/.exec(text)?.[0] ?? "";
    expect(scriptOf(page.text)).toStartWith("/assets/operator-");
    expect(scriptOf(dashboard.text)).toStartWith("/assets/postrider-");
    expect((await local().request("GET", scriptOf(page.text))).status).toBe(200);
  });
});
