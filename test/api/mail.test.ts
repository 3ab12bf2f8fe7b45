import { afterAll, beforeAll, expect, test } from "bun:test";
import { testOnSqlite } from "../support/server-data.ts";
import { startSmtpServer, type TestSmtpServer } from "../support/smtp.ts";
import { startTestApp, type TestApp } from "../support/test-app.ts";
import { provenSections, scenarios, useServer } from "./scenario.ts";

/** Rules, section 16: mail. */
provenSections.add("rules 16");

const goodPassword = "Corr3ct#Horse";
let smtp: TestSmtpServer;
let server: TestApp;

beforeAll(async () => {
  smtp = await startSmtpServer();
  server = await startTestApp({
    env: { POSTRIDER_SMTP_URL: `smtp://127.0.0.1:${smtp.port}`, POSTRIDER_MAIL_FROM: "Postrider <relay@example.com>" },
  });
});
afterAll(async () => {
  await server.stop();
  await smtp.stop();
});

const withoutMail = useServer();

const forget = (loginId: string, of: TestApp = server) =>
  of.request("POST", "/v1/tenants/auth/forgot-password", { body: { loginId } });
const reset = (token: string, new_password = goodPassword) =>
  server.request("POST", "/v1/tenants/auth/reset-password", { body: { token, new_password } });
const logIn = async (loginId: string, password: string) =>
  (await server.request("POST", "/v1/tenants/auth/login", { body: { loginId, password } })).status;

test("a link sets one new password, by mail alone, and ends every session", async () => {
  const ada = await server.account({ email: "Ada@example.com" });
  const before = smtp.mails.length;
  const [known, unknown, noMail] = [ada.id, "t0000000000000", (await server.account()).id];
  const answers = await Promise.all([known, unknown, noMail].map((loginId) => forget(loginId)));
  expect(answers.map(({ status, text }) => [status, text])).toEqual([
    [202, ""],
    [202, ""],
    [202, ""],
  ]);
  const mail = await smtp.mail(before);
  expect(mail).toMatchObject({ to: ["ada@example.com"], from: "relay@example.com" });
  expect(mail.header("Subject")).toBe("Set a new password for Postrider");
  const [, token = ""] = /\/new-password#([0-9a-z]+)\n/.exec(mail.text) ?? [];
  expect(token).toHaveLength(40);
  expect(mail.html).toContain(`/new-password#${token}`);

  expect((await reset(token, "weak")).body.code).toBe("weak_password");
  expect((await reset(`${token}x`)).body).toMatchObject({
    code: "reset_link_invalid",
    message: "The link is not valid any more; ask for another one.",
  });
  expect((await reset(token)).status).toBe(204);
  expect((await ada.get("/v1/tenants/me")).status).toBe(401);
  expect([await logIn(ada.id, ada.password), await logIn(ada.id, goodPassword)]).toEqual([401, 200]);
  expect((await reset(token)).body.code).toBe("reset_link_invalid");

  // Within the hour there is no other one, and the secret is nowhere but in the mail.
  await forget(ada.id);
  const eve = await server.account({ email: "eve@example.com" });
  await forget(eve.id);
  expect(await smtp.mail(before + 1)).toMatchObject({ to: ["eve@example.com"] });
  expect(smtp.mails).toHaveLength(before + 2);
  expect(server.log.join("\n")).not.toContain(token);
  const audit = await server.request("GET", `/operator/audit?tenant=${ada.id}`, { token: server.operatorToken });
  expect(audit.body.entries.map(({ action }: { action: string }) => action)).toContain("password.reset");
  expect(audit.text).not.toContain(token);
});

test.each(["forgot-password", "reset-password"])("a body of more than 16 KiB is 413 at %s", async (action) => {
  const post = async (body: string) => {
    const answer = await server.request("POST", `/v1/tenants/auth/${action}`, { body });
    return [answer.status, answer.body.code];
  };
  const full = `{}${" ".repeat(16 * 1024 - 2)}`;
  expect(await post(full)).toEqual([400, "field_required"]);
  expect(await post(`${full} `)).toEqual([413, "body_too_large"]);
});

test("whoever signs in with an address gets a link, also when others have named it as their contact", async () => {
  const email = "owner@example.com";
  const before = smtp.mails.length;
  const owner = { tier: "pro", name: "Owner", email };
  const { tenant_id } = (
    await server.request("POST", "/operator/tenants", { token: server.operatorToken, body: owner })
  ).body;
  const [first, second] = [await server.account({ email }), await server.account({ email })];
  await forget(first.id);
  expect((await smtp.mail(before)).text).toContain(` ${first.id} `);
  await forget(second.id);
  await forget("Owner@example.com");
  expect((await smtp.mail(before + 1)).text).toContain(` ${tenant_id} `);
  expect(smtp.mails).toHaveLength(before + 2);
});

test("the operator tries it with postrider mail test, and sees what the SMTP server says", async () => {
  const tryIt = () =>
    server.request("POST", "/operator/mail/test", { token: server.operatorToken, body: { to: "ops@example.com" } });
  const before = smtp.mails.length;
  expect((await tryIt()).status).toBe(204);
  expect((await smtp.mail(before)).text).toContain("works. This one was asked for with postrider mail test.");
  smtp.refuse("no such user");
  expect(await tryIt()).toMatchObject({
    status: 503,
    body: { code: "mail_failed", message: expect.stringMatching(/no such user.* Try: check the address/) },
  });
  const noted = await server.request("GET", "/operator/audit?action=mail.tested", { token: server.operatorToken });
  expect(noted.body).toMatchObject({ entries: [{ by: "operator", tenant_id: null }], total: 1 });
  smtp.refuse(null);
});

testOnSqlite("a disk that is below its floor at the start is mailed to the operator, with the time", async () => {
  const before = smtp.mails.length;
  const low = await startTestApp({
    env: {
      POSTRIDER_SMTP_URL: `smtp://127.0.0.1:${smtp.port}`,
      POSTRIDER_MAIL_FROM: "relay@example.com",
      POSTRIDER_OPERATOR_MAIL: "ops@example.com",
      POSTRIDER_MIN_FREE_DISK: "900000GiB",
    },
  });
  const mail = await smtp.mail(before);
  expect(mail.to).toEqual(["ops@example.com"]);
  expect(mail.text).toMatch(/^20\d\d-\d\d-\d\d \d\d:\d\d UTC: \S+ has \d+\.\d GiB left on the disk/);
  await low.stop();
});

test("an SMTP server that is away is one line in the log, and counted", async () => {
  smtp.refuse("come back later");
  const { id } = await server.account({ email: "late@example.com" });
  await forget(id);
  const metrics = async () => (await server.request("GET", "/metrics", { token: server.operatorToken })).text;
  while (!/postrider_mail_failures_total [1-9]/.test(await metrics()));
  expect(await metrics()).toMatch(/postrider_mails_sent_total [1-9]/);
  const lines = server.log.map((line) => JSON.parse(line)).filter(({ event }) => event.startsWith("mail."));
  expect(lines).toMatchObject([{ level: "error", event: "mail.failed", kind: "password.reset_by_contact" }]);
  smtp.refuse(null);
});

scenarios("POST /v1/tenants/auth/forgot-password", () => ({ server: withoutMail() }), {
  "says so where no mail is sent": {
    section: "rules 16",
    request: () => forget("t0000000000000", withoutMail()),
    status: 403,
    body: { code: "mail_off", message: "This server sends no mail; ask its operator for a new password." },
  },
});

scenarios("GET /v1/about", () => ({ server: withoutMail() }), {
  "says whether mail is sent": {
    section: "rules 16",
    request: () => withoutMail().request("GET", "/v1/about"),
    status: 200,
    body: { mail: false },
  },
});
