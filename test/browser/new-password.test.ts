import { afterAll, describe, expect, test } from "bun:test";
import { startSmtpServer } from "../support/smtp.ts";
import { noBrowser, openBrowser } from "./browser.ts";
import { startExecutable } from "./executable.ts";
import { openAccount } from "./signed-in.ts";
import { follow, logIn, press, seeHeading, seePath, seeText, signIn } from "./visitor.ts";

const smtp = await startSmtpServer();
afterAll(() => smtp.stop());
const server = await startExecutable({
  POSTRIDER_SMTP_URL: `smtp://127.0.0.1:${smtp.port}`,
  POSTRIDER_MAIL_FROM: "Postrider <relay@example.com>",
});
const browser = openBrowser(server.url);

const goodPassword = "Corr3ct#Horse";

describe.skipIf(noBrowser !== null)("who has lost the password", () => {
  test("gets a link by mail, on a phone too, and sets another one with it, once", async () => {
    const body = JSON.stringify({ email: "ada@example.com" });
    const headers = { "Content-Type": "application/json" };
    const created = await fetch(`${server.url}/v1/tenants`, { method: "POST", headers, body });
    const { tenant_id: id } = (await created.json()) as { tenant_id: string };

    const page = await browser.page({ size: "phone", provoked: [/400/] });
    await page.goto(`${server.url}/sign-in`);
    await follow(page, "Forgot your password?");
    await seeHeading(page, "Set a new password");
    await page.getByLabel("Tenant id or e-mail").fill(id);
    await press(page, "Send a link");
    await seeText(page, "a link is on its way");
    await browser.inspect(page, "forgot-password");

    const [link = ""] = /http:\S+\/new-password#\S+/.exec((await smtp.mail(0)).text) ?? [];
    const { hash } = new URL(link);
    await page.goto("about:blank");
    await page.goto(`${server.url}/new-password${hash}`);
    // It is in no history, and in no picture of the page.
    await page.waitForURL(`${server.url}/new-password`);
    await page.getByLabel("New password").fill("weak");
    await press(page, "Set the password");
    await seeText(page, "does not meet all of these rules yet");
    await browser.inspect(page, "new-password");
    await page.getByLabel("New password").fill(goodPassword);
    await press(page, "Set the password");
    await seeText(page, "The password is set.");
    await follow(page, "Sign in");
    await seePath(page, "/sign-in");
    expect(await logIn(server.url, id, goodPassword)).toStartWith("ey");

    await page.goto("about:blank");
    await page.goto(`${server.url}/new-password${hash}`);
    await page.getByLabel("New password").fill(goodPassword);
    await press(page, "Set the password");
    await seeText(page, "The link is not valid any more");
  });

  test("but has signed in meanwhile finds the account again, after a step back and in another tab", async () => {
    const page = await browser.page({ size: "desktop" });
    const { id, password } = await openAccount(server.url);
    await page.goto(`${server.url}/sign-in`);
    await follow(page, "Forgot your password?");
    await seeHeading(page, "Set a new password");
    await follow(page, "Sign in");
    await signIn(page, id, password);
    await seeHeading(page, "Overview");
    const other = await page.context().newPage();
    await other.goto(`${server.url}/new-password`);
    await page.goBack();
    for (const tab of [other, page]) {
      await seeHeading(tab, "Set a new password");
      await follow(tab, "Sign in");
      await seeHeading(tab, "Overview");
    }
  });
});
