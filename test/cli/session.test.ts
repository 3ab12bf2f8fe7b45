import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { startTestApp, type TestAccount, type TestApp } from "../support/test-app.ts";
import { type } from "../support/typed.ts";

/** Whose account a command acts on, when it is given a token and a login. */

let app: TestApp;
let ada: TestAccount;
let bob: TestAccount;
let ended: string;

beforeAll(async () => {
  app = await startTestApp();
  [ada, bob] = await Promise.all([app.account(), app.account()]);
  const login = { loginId: bob.id, password: bob.password };
  ended = (await app.request("POST", "/v1/tenants/auth/login", { body: login })).body.token;
  await app.request("POST", "/v1/tenants/auth/logout", { token: ended });
});
afterAll(() => app.stop());

const loginOf = ({ id, password }: TestAccount) => ({ POSTRIDER_LOGIN: id, POSTRIDER_PASSWORD: password });

async function run(token: string, env: Record<string, string>, words: readonly string[] = []) {
  const { ended, out, err } = type(app.url, { jwt: token }, ["webhooks", "list", "--json", ...words], { env });
  return { code: await ended, out, err };
}

describe("a token", () => {
  test("replaces the login and password of the environment", async () => {
    await bob.put("/v1/tenants/webhooks", [{ webhook_url: "https://example.com/bob" }]);
    expect((await run(bob.jwt, loginOf(ada))).out.join()).toContain("https://example.com/bob");
  });

  test("that has ended gives way to the login of its account", async () => {
    expect((await run(ended, loginOf(bob))).out.join()).toContain("https://example.com/bob");
  });

  test("that has ended does not give way to the login of another account", async () => {
    expect(await run(ended, loginOf(ada))).toEqual({
      code: 1,
      out: [],
      err: [
        `postrider: POSTRIDER_TOKEN is invalid or has expired, and belongs to ${bob.id}. Try: no POSTRIDER_TOKEN, to sign in to ${ada.id}, or the token of a new login.`,
      ],
    });
  });

  test("that cannot be read gives way to no login", async () => {
    expect(await run("nonsense", loginOf(ada))).toMatchObject({
      code: 1,
      out: [],
      err: [expect.stringContaining(" and does not name its account. Try: ")],
    });
  });

  test("goes with the id of its account in --login", async () => {
    expect(await run(bob.jwt, {}, ["--login", bob.id.toUpperCase()])).toMatchObject({ code: 0, err: [] });
  });

  test("goes with the e-mail of its account in --login, in any letter case", async () => {
    const { email } = (await bob.get("/v1/tenants/me")).body;
    expect(await run(bob.jwt, {}, ["--login", email.toUpperCase()])).toMatchObject({ code: 0, err: [] });
  });

  test("does not overrule a --login of another account", async () => {
    expect(await run(bob.jwt, { POSTRIDER_PASSWORD: ada.password }, ["--login", ada.id])).toEqual({
      code: 1,
      out: [],
      err: [`postrider: POSTRIDER_TOKEN belongs to ${bob.id}, but --login names ${ada.id}. Try: only one of the two.`],
    });
  });
});
