// biome-ignore-all lint/suspicious/noThenProperty: rows of a scenario table have one
import { beforeAll, describe, expect, test } from "bun:test";
import { createTravelClock, startHooks } from "../support/api-server.ts";
import { connectRaw } from "../support/raw-peer.ts";
import type { Answer, TestAccount, TestApp } from "../support/test-app.ts";
import { startTestApp } from "../support/test-app.ts";
import { type Scenario, scenarios, useServer } from "./scenario.ts";

/** Specification, "Login" and "Authentication"; rules, section 4: sessions, passwords, and the end of an account. */

const { any, stringMatching } = expect;

interface World {
  server: TestApp;
  ada: TestAccount;
}

const goodPassword = "Corr3ct#Horse";
const newPassword = "N3w+Password";
const minutes = 60_000;
const hours = 60 * minutes;

const server = useServer();
let ada: TestAccount;

beforeAll(async () => {
  ada = await server().account();
  const body = { tier: "pro", name: "Ada Ltd", email: "Ada@Example.com", password: goodPassword };
  await server().request("POST", "/operator/tenants", { token: server().operatorToken, body });
});

const world = (): World => ({ server: server(), ada });

const logIn = (loginId: unknown, password: unknown, on = server()): Promise<Answer> =>
  on.request("POST", "/v1/tenants/auth/login", { body: { loginId, password } });

const me = async (token: string, on = server()) => (await on.request("GET", "/v1/tenants/me", { token })).status;

const claimsOf = (token: string) => JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString());

const sessionOf = (account: TestAccount, tier = "free") => ({
  status: "authenticated",
  token: stringMatching(/^eyJ[\w-]+\.[\w-]+\.[\w-]{43}$/),
  tenant_id: account.id,
  tenant_name: any(String),
  tier,
});

function refusal(body: unknown, code: string, message: RegExp): Scenario<World> {
  return {
    section: "spec: Login",
    request: ({ server }) => server.request("POST", "/v1/tenants/auth/login", { body }),
    status: 400,
    exact: true,
    body: { message: stringMatching(message), code },
    never: () => [goodPassword],
  };
}

scenarios<World>("POST /v1/tenants/auth/login", world, {
  "with the tenant id": {
    section: "spec: Login",
    request: ({ ada }) => logIn(ada.id, ada.password),
    status: 200,
    exact: true,
    body: ({ ada }: World) => sessionOf(ada),
    headers: { "Cache-Control": "no-store" },
    never: ({ ada }) => [ada.password, ada.apiKey, "argon2"],
    async then(_, { body }) {
      const { iat, exp } = claimsOf(body.token);
      expect(exp - iat).toBe(2 * 60 * 60);
      expect(JSON.parse(Buffer.from(body.token.split(".")[0], "base64url").toString()).alg).toBe("HS256");
      expect(await me(body.token)).toBe(200);
    },
  },
  "with the e-mail of a paid account, in any case": {
    section: "rules 4",
    request: () => logIn("aDA@example.COM", goodPassword),
    status: 200,
    exact: true,
    body: ({ ada }: World) => ({ ...sessionOf(ada, "pro"), tenant_id: any(String), tenant_name: "Ada Ltd" }),
  },
  "with the e-mail of a free account": {
    section: "rules 4",
    request: ({ ada }) => logIn(`sandbox+${ada.id}@postrider.invalid`, ada.password),
    status: 401,
    exact: true,
    body: { message: any(String), code: "wrong_credentials" },
  },
  "with a wrong password": {
    section: "spec: Authentication",
    request: ({ ada }) => logIn(ada.id, "Wr0ng#Password"),
    status: 401,
    exact: true,
    body: { message: any(String), code: "wrong_credentials" },
    headers: { "WWW-Authenticate": "Bearer" },
    never: ({ ada }) => [ada.id, "Wr0ng"],
  },
  "an unknown id and a wrong password are the same bytes": {
    section: "rules 4",
    request: () => logIn("t0000000000000", goodPassword),
    status: 401,
    async then({ ada }, { text, headers }) {
      const wrong = await logIn(ada.id, goodPassword);
      const unknownEmail = await logIn("nobody@example.com", goodPassword);
      expect([wrong.text, unknownEmail.text]).toEqual([text, text]);
      const names = (of: Headers) => [...of.keys()].sort();
      expect(names(wrong.headers)).toEqual(names(headers));
    },
  },
  "without loginId": refusal({ password: goodPassword }, "field_required", /^loginId is required\.$/),
  "without password": refusal({ loginId: "t0000000000000" }, "field_required", /^password is required\.$/),
  "with an empty loginId": refusal({ loginId: "", password: goodPassword }, "invalid_request", /^loginId must/),
  "with an empty password": refusal({ loginId: "x", password: "" }, "invalid_request", /^password must/),
  "with a loginId of 255 characters": refusal(
    { loginId: "x".repeat(255), password: "x" },
    "invalid_request",
    /^loginId/,
  ),
  "with a password of 1,025 bytes": refusal(
    { loginId: "x", password: "x".repeat(1025) },
    "invalid_request",
    /^password/,
  ),
  "with a loginId that is an object": refusal(
    { loginId: {}, password: "x" },
    "invalid_request",
    /^loginId must be a str/,
  ),
  "with a password that is a number": refusal(
    { loginId: "x", password: 1 },
    "invalid_request",
    /^password must be a str/,
  ),
  "with a list": refusal([], "invalid_request", /^The body must be a JSON object/),
});

scenarios<World>("POST /v1/tenants/auth/refresh", world, {
  "gives another token of the same login": {
    section: "rules 4",
    request: ({ ada }) => ada.post("/v1/tenants/auth/refresh"),
    status: 200,
    exact: true,
    body: ({ ada }: World) => sessionOf(ada),
    async then({ ada }, { body }) {
      expect(body.token).not.toBe(ada.jwt);
      expect(claimsOf(body.token).auth_time).toBe(claimsOf(ada.jwt).auth_time);
      expect([await me(body.token), await me(ada.jwt)]).toEqual([200, 200]);
    },
  },
});

let leaving: TestAccount;
let leavingToo: string;
let stream: Response;

scenarios<World>("POST /v1/tenants/auth/logout", world, {
  "ends this token alone": {
    section: "rules 4",
    async given({ server }) {
      leaving = await server.account();
      leavingToo = (await logIn(leaving.id, leaving.password)).body.token;
    },
    request: () => leaving.post("/v1/tenants/auth/logout"),
    status: 204,
    then: async (_, { text }) => expect([text, await me(leaving.jwt), await me(leavingToo)]).toEqual(["", 401, 200]),
  },
  "with all: false, too": {
    section: "rules 4",
    async given() {
      leaving = { ...leaving, jwt: (await logIn(leaving.id, leaving.password)).body.token };
    },
    request: ({ server }) =>
      server.request("POST", "/v1/tenants/auth/logout", { token: leaving.jwt, body: { all: false } }),
    status: 204,
    then: async () => expect([await me(leaving.jwt), await me(leavingToo)]).toEqual([401, 200]),
  },
  "with all: true ends every token, and a login begins anew": {
    section: "rules 4",
    async given() {
      leaving = { ...leaving, jwt: (await logIn(leaving.id, leaving.password)).body.token };
    },
    request: ({ server }) =>
      server.request("POST", "/v1/tenants/auth/logout", { token: leavingToo, body: { all: true } }),
    status: 204,
    async then() {
      expect([await me(leaving.jwt), await me(leavingToo)]).toEqual([401, 401]);
      expect(await me((await logIn(leaving.id, leaving.password)).body.token)).toBe(200);
    },
  },
  "with all: true ends the streams": {
    section: "rules 11",
    async given({ server }) {
      leaving = { ...leaving, jwt: (await logIn(leaving.id, leaving.password)).body.token };
      stream = await fetch(`${server.url}/v1/stream`, { headers: { Authorization: `Bearer ${leaving.jwt}` } });
      expect(stream.status).toBe(200);
    },
    request: ({ server }) =>
      server.request("POST", "/v1/tenants/auth/logout", { token: leaving.jwt, body: { all: true } }),
    status: 204,
    // Resolves when the server has closed it.
    then: () => stream.text(),
  },
  "with an all that is a text": {
    section: "rules 3",
    request: ({ ada }) => ada.post("/v1/tenants/auth/logout", { all: "yes" }),
    status: 400,
    exact: true,
    body: { message: stringMatching(/^all must be true or false\.$/), code: "invalid_request" },
    then: async ({ ada }) => expect(await me(ada.jwt)).toBe(200),
  },
});

let changes: Answer[];

const change = (account: TestAccount, current_password: unknown, new_password: unknown) =>
  account.put("/v1/tenants/password", { current_password, new_password });

const changeRefusal = (current: unknown, next: unknown, code: string, message: RegExp): Scenario<World> => ({
  section: "rules 4",
  request: ({ ada }) => change(ada, current ?? ada.password, next),
  status: 400,
  exact: true,
  body: { message: stringMatching(message), code },
  never: ({ ada }) => [ada.password, goodPassword],
  then: async ({ ada }) => expect(await me(ada.jwt)).toBe(200),
});

scenarios<World>("PUT /v1/tenants/password", world, {
  "changes it, and every earlier token ends": {
    section: "rules 4",
    async given({ server }) {
      leaving = await server.account();
    },
    request: () => change(leaving, leaving.password, newPassword),
    status: 200,
    exact: true,
    body: () => sessionOf(leaving),
    async then(_, { body }) {
      expect([await me(leaving.jwt), await me(body.token)]).toEqual([401, 200]);
      expect((await logIn(leaving.id, leaving.password)).status).toBe(401);
      expect((await logIn(leaving.id, newPassword)).status).toBe(200);
    },
  },
  "six at once with one current password: the first one counts, and the others come too late": {
    section: "rules 4",
    async given({ server }) {
      leaving = await server.account();
      const passwords = Array.from({ length: 6 }, (_, i) => `N3w#Password${i}`);
      changes = await Promise.all(passwords.map((next) => change(leaving, leaving.password, next)));
      const logins = await Promise.all(passwords.map((next) => logIn(leaving.id, next)));
      const isRight = (answers: Answer[]) => answers.map(({ status }) => status === 200);
      expect(isRight(logins)).toEqual(isRight(changes));
    },
    request: async () => changes.find(({ status }) => status === 200) as Answer,
    status: 200,
    then() {
      // Their password is wrong by then, or their session has ended already.
      const codes = changes.filter(({ status }) => status !== 200).map(({ body }) => body.code);
      expect(codes).toHaveLength(5);
      for (const code of codes) expect(["wrong_password", "unauthenticated"]).toContain(code);
    },
  },
  "with a wrong current one": changeRefusal("Wr0ng#Password", newPassword, "wrong_password", /^current_password /),
  "with a new one that is too short": changeRefusal(null, "Ab1#", "weak_password", /^new_password .*8 characters/),
  "with a new one without a digit": changeRefusal(null, "Abcdefg#", "weak_password", /^new_password .*one digit/),
  "without the current one": changeRefusal("", newPassword, "invalid_request", /^current_password must/),
  "without the new one": changeRefusal(null, undefined, "field_required", /^new_password is required/),
});

let victim: TestAccount;

scenarios<World>("POST /v1/tenants/auth/login", world, {
  "the eleventh try after ten failures is 429, with the right password, too": {
    section: "rules 4",
    async given({ server }) {
      victim = await server.account();
      const failures = await Promise.all(Array.from({ length: 10 }, () => logIn(victim.id, "Wr0ng#Password")));
      expect(failures.map(({ status }) => status)).toEqual(Array(10).fill(401));
    },
    request: () => logIn(victim.id, victim.password),
    status: 429,
    exact: true,
    body: { message: any(String), code: "too_many_logins" },
    headers: { "Retry-After": /^(8[0-9][0-9]|900)$/ },
    async then({ ada }) {
      // The session goes on, another account is not stopped, and a change of the password is no way around.
      expect(await me(victim.jwt)).toBe(200);
      expect((await logIn(ada.id, ada.password)).status).toBe(200);
      expect((await change(victim, victim.password, newPassword)).status).toBe(429);
      expect((await change(victim, victim.password, 7)).status).toBe(429);
    },
  },
});

describe("as time passes", () => {
  const clock = createTravelClock();
  const server = useServer({ clock });

  test("a token ends after 2 hours", async () => {
    const account = await server().account();
    clock.travel(2 * hours - minutes);
    expect(await me(account.jwt, server())).toBe(200);
    clock.travel(minutes);
    expect(await me(account.jwt, server())).toBe(401);
  });

  test("a login is renewed until 24 hours have passed", async () => {
    const account = await server().account();
    const renew = (token: string) => server().request("POST", "/v1/tenants/auth/refresh", { token });
    let token = account.jwt;
    for (let step = 0; step < 12; step++) {
      clock.travel(2 * hours - minutes);
      const renewed = await renew(token);
      expect(renewed.status).toBe(200);
      token = renewed.body.token;
    }
    clock.travel(12 * minutes);
    const late = await renew(token);
    expect([late.status, late.body]).toEqual([401, { message: any(String), code: "session_too_old" }]);
    expect(await me(token, server())).toBe(200);
  });

  test("failed logins are forgotten after 15 minutes", async () => {
    const account = await server().account();
    await Promise.all(Array.from({ length: 10 }, () => logIn(account.id, "Wr0ng#Password", server())));
    const refused = await logIn(account.id, account.password, server());
    expect(refused.status).toBe(429);
    clock.travel(Number(refused.headers.get("Retry-After")) * 1000);
    expect((await logIn(account.id, account.password, server())).status).toBe(200);
  });
});

test("sessions and what has ended survive a restart", async () => {
  const first = await startTestApp();
  const account = await first.account();
  const other = (await logIn(account.id, account.password, first)).body.token;
  await account.post("/v1/tenants/auth/logout");
  await first.stop({ keepData: true });
  const second = await startTestApp({ dataDir: first.dataDir });
  expect([await me(account.jwt, second), await me(other, second)]).toEqual([401, 200]);
  await second.stop();
});

describe("a request whose last byte its client holds back", () => {
  /** Resolves once the server has begun to read it: both heads arrive together, and the first has been answered. */
  async function hold(method: string, path: string, token: string, body: object, on = server()) {
    const text = JSON.stringify(body);
    const peer = await connectRaw(on.url);
    const head = `Host: localhost\r\nAuthorization: Bearer ${token}\r\nContent-Type: application/json\r\n`;
    const begun = `${method} ${path} HTTP/1.1\r\n${head}Content-Length: ${text.length}\r\n\r\n${text.slice(0, -1)}`;
    peer.write(`GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n${begun}`);
    await peer.until((said) => said.includes("200 OK"));
    return async () => {
      peer.write(text.slice(-1));
      const said = await peer.until((said) => /HTTP\/1\.1 [\s\S]*HTTP\/1\.1 \d{3}[\s\S]*"code":"/.test(said));
      peer.socket.destroy();
      return [...said.matchAll(/HTTP\/1\.1 (\d{3})|"code":"(\w+)"/g)]
        .slice(1)
        .map(([, status, code]) => status ?? code);
    };
  }

  test.each([
    ["the password is changed", (it: TestAccount) => change(it, it.password, newPassword)],
    ["every session is ended", (it: TestAccount) => it.post("/v1/tenants/auth/logout", { all: true })],
  ])("is refused if %s meanwhile", async (_, end) => {
    const account = await server().account();
    const keys = await hold("POST", "/v1/tenants/api-keys/rotate", account.jwt, { grace_period_seconds: 0 });
    expect((await end(account)).status).toBeLessThan(300);
    expect(await keys()).toEqual(["401", "unauthenticated"]);
  });

  test("is refused if the account is suspended meanwhile", async () => {
    const hooks = await startHooks();
    const hook = hooks.hook();
    const account = await server().account();
    await account.put("/v1/tenants/webhooks", [{ webhook_url: hook.url, name: "" }]);
    const [{ id }] = (await account.get("/v1/tenants/webhooks?expand=true")).body;
    const held = await hold("POST", `/v1/tenants/webhooks/${id}/test`, account.jwt, { payload: {} });
    const body = { reason: "" };
    const suspended = { token: server().operatorToken, body };
    expect((await server().request("POST", `/operator/tenants/${account.id}/suspend`, suspended)).status).toBe(200);
    expect((await held())[0]).toBe("403");
    expect(hook.received).toEqual([]);
    hooks.stop();
  });

  test("is refused if the operator's token is replaced meanwhile", async () => {
    const own = await startTestApp();
    const account = await own.account();
    const path = `/operator/tenants/${account.id}/reset-password`;
    const held = await hold("POST", path, own.operatorToken, {}, own);
    expect((await own.request("POST", "/operator/token/rotate", { token: own.operatorToken })).status).toBe(200);
    expect(await held()).toEqual(["401", "unauthenticated"]);
    expect((await logIn(account.id, account.password, own)).status).toBe(200);
    await own.stop();
  });
});
