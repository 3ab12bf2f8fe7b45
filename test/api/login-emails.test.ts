import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { startTestApp } from "../support/test-app.ts";
import { cards, createClockAt, customerOf, goodPassword, pay, signUp, signUpFree, withSandbox } from "./customers.ts";

/** Who signs in with an address that nobody had to prove. */

setDefaultTimeout(120_000);

const minuteMs = 60_000;
const dayMs = 24 * 60 * minuteMs;

async function world(env: Record<string, string> = {}) {
  const clock = createClockAt("2031-10-10T09:00:00Z");
  const server = await startTestApp({ clock, env: { ...withSandbox, ...env } });
  const ask = (email: string) =>
    server.request("POST", "/v1/tenants", { body: { tier: "pro", name: "Next", email, password: goodPassword } });
  const logIn = async (loginId: string) =>
    (await server.request("POST", "/v1/tenants/auth/login", { body: { loginId, password: goodPassword } })).body;
  return { clock, server, ask, logIn, [Symbol.asyncDispose]: () => server.stop() };
}

describe("the address of an account that has not verified a card", () => {
  test("is taken for a day, and then it is the next one's who asks for it", async () => {
    await using w = await world();
    const first = await signUp(w.server, { email: "ada@example.com" });
    w.clock.travel(dayMs - minuteMs);
    const early = await w.ask("Ada@example.com");
    expect([early.status, early.body.code]).toEqual([400, "email_taken"]);

    w.clock.travel(minuteMs);
    const next = await w.ask("Ada@example.com");
    expect(next.status).toBe(201);
    expect((await w.logIn("ada@example.com")).tenant_id).toBe(next.body.tenant_id);
    expect((await w.logIn(first.id)).tenant_id).toBe(first.id);
    const released = w.server.log
      .map((line) => JSON.parse(line))
      .filter(({ event }) => event === "account.email_released");
    expect(released).toMatchObject([{ tenant: first.id }]);

    // The verification that comes after all gives nothing back.
    await pay(w.server, first.paymentUrl, cards.good);
    await (await customerOf(w.server, first.id, goodPassword)).whenBilling(({ status }) => status === "active");
    expect((await w.logIn("ada@example.com")).tenant_id).toBe(next.body.tenant_id);
    expect(await (await customerOf(w.server, first.id, goodPassword)).me()).toMatchObject({ email: "ada@example.com" });
  });

  test("goes to an upgrade as well, and from one", async () => {
    await using w = await world();
    const [first, second] = [await signUpFree(w.server), await signUpFree(w.server)];
    const order = { tier: "pro", email: "ada@example.com", password: goodPassword };
    expect((await first.upgrade(order)).status).toBe(202);
    expect((await second.upgrade(order)).status).toBe(400);
    w.clock.travel(dayMs);
    await second.logIn();
    expect((await second.upgrade(order)).status).toBe(202);
    expect((await w.logIn("ada@example.com")).tenant_id).toBe(second.id);
  });

  test("stays with it when the upgrade that asks for it is refused", async () => {
    await using w = await world({ POSTRIDER_PAUSED: "charges" });
    const first = await signUp(w.server, { email: "ada@example.com" });
    const eve = await signUpFree(w.server);
    w.clock.travel(dayMs);
    await eve.logIn();
    const refused = await eve.upgrade({ tier: "pro", email: "ada@example.com", password: goodPassword });
    expect([refused.status, refused.body.code]).toEqual([503, "charges_paused"]);
    expect((await w.logIn("ada@example.com")).tenant_id).toBe(first.id);
  });

  test("stays with one whose card is verified, and with one that the operator vouches for", async () => {
    await using w = await world();
    const verified = await signUp(w.server, { email: "ada@example.com" });
    await pay(w.server, verified.paymentUrl, cards.good);
    await verified.whenBilling(({ status }) => status === "active");
    await w.server.request("POST", "/operator/tenants", {
      token: w.server.operatorToken,
      body: { tier: "pro", name: "Bank", email: "bank@example.com", password: goodPassword },
    });
    const vouched = await customerOf(w.server, (await w.logIn("bank@example.com")).tenant_id, goodPassword);
    expect((await vouched.upgrade({ tier: "business" })).status).toBe(202);
    w.clock.travel(2 * dayMs);
    for (const email of ["ada@example.com", "bank@example.com"]) expect((await w.ask(email)).status).toBe(400);
  });
});

test("an address with characters that nobody sees is refused", async () => {
  await using w = await world();
  const unseen = [
    0xad, 0x200b, 0x200d, 0x200e, 0x202a, 0x202e, 0x2060, 0x2066, 0x2069, 0xfeff, 0x3164, 0xe0061, 0x1f, 0x85,
  ];
  for (const code of unseen) {
    const character = String.fromCodePoint(code);
    for (const email of [`a${character}da@example.com`, `ada@exam${character}ple.com`]) {
      const { status, body } = await w.ask(email);
      expect([code.toString(16), status, body.code]).toEqual([code.toString(16), 400, "invalid_request"]);
    }
  }
  expect((await w.ask("jürgen+läden@bücher.example")).status).toBe(201);
});
