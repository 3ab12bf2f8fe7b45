import { afterEach, expect, test } from "bun:test";
import { createPost } from "../../src/mail/post.ts";
import { createAuthority } from "../support/certificates.ts";
import { startSmtpServer, type TestSmtpServer } from "../support/smtp.ts";

const authority = createAuthority("Test mail");
const certificate = authority.issue({ hosts: ["localhost", "127.0.0.1"] });
const letter = { subject: "Grüße 🚀", text: `Ein Wort\n\n${"lang ".repeat(200)}\n`, html: "<p>Ein Wort</p>" };
const from = "Postrider <relay@example.com>";

let smtp: TestSmtpServer | null = null;
afterEach(async () => {
  await smtp?.stop();
  smtp = null;
});

const send = (smtpUrl: string, to = "ada@example.com") =>
  createPost({ smtpUrl, from }, authority.cert).send(letter, to, "<1@relay.example>");

test("a mail comes as plain text and as HTML, says that a program wrote it, and has the id that it was given", async () => {
  smtp = await startSmtpServer();
  await send(`smtp://127.0.0.1:${smtp.port}`);
  const mail = await smtp.mail(0);
  expect(mail).toMatchObject({ from: "relay@example.com", to: ["ada@example.com"], user: null, secure: false });
  expect(mail.text.trim()).toBe(letter.text.trim());
  expect(mail.html.trim()).toBe(letter.html);
  expect(mail.header("Message-ID")).toBe("<1@relay.example>");
  expect(mail.header("Auto-Submitted")).toBe("auto-generated");
  expect(mail.header("From")).toBe(from);
});

test.each([
  ["by STARTTLS", "smtp", { cert: certificate.cert, key: certificate.key }],
  ["by TLS from the start", "smtps", { cert: certificate.cert, key: certificate.key, secure: true }],
])("a password goes %s", async (_, protocol, options) => {
  smtp = await startSmtpServer({ ...options, authOptional: false });
  await send(`${protocol}://relay%40example.com:s3cret%26@localhost:${smtp.port}`);
  expect(await smtp.mail(0)).toMatchObject({ user: "relay@example.com", secure: true });
});

test("an address with a comma is one address", async () => {
  smtp = await startSmtpServer();
  await send(`smtp://127.0.0.1:${smtp.port}`, "a,b@example.com").catch(() => {});
  expect(smtp.mails.flatMap(({ to }) => to).filter((to) => !/^"?a,b"?@example\.com$/.test(to))).toEqual([]);
});

test("what the SMTP server says is told, and never the password", async () => {
  smtp = await startSmtpServer({
    cert: certificate.cert,
    key: certificate.key,
    onAuth: (auth, _, done) => done(new Error(`No: ${auth.password}`)),
  });
  const wrong = send(`smtp://relay:wr0ng@localhost:${smtp.port}`);
  await expect(wrong).rejects.toThrow(/No: \*{8}/);
  await wrong.catch(() => {});
  const { port } = smtp;
  await smtp.stop();
  smtp = null;
  await expect(send(`smtp://127.0.0.1:${port}`)).rejects.toThrow(/ECONNREFUSED|refused|closed/i);
});

test("a certificate that nobody has vouched for is refused", async () => {
  smtp = await startSmtpServer({ cert: certificate.cert, key: certificate.key });
  const { send: sendTo } = createPost({ smtpUrl: `smtp://relay:s3cret%26@localhost:${smtp.port}`, from });
  await expect(sendTo(letter, "ada@example.com", "<1@relay.example>")).rejects.toThrow(/certificate|issuer/i);
});
