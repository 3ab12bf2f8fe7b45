import { describe, expect, test } from "bun:test";
import type { Page } from "playwright-core";
import { noBrowser, openBrowser } from "./browser.ts";
import { startExecutable } from "./executable.ts";
import {
  ask,
  busy,
  follow,
  logIn,
  pay,
  press,
  pressRefused,
  refuseOnce,
  seeHeading,
  seePath,
  seeText,
  signedIn,
  startFreeAccount,
  tokenOf,
} from "./visitor.ts";

const server = await startExecutable();
const browser = openBrowser(server.url);

const goodPassword = "A stamp for 1 letter!";
const inDialog = (page: Page) => page.getByRole("dialog");

describe.skipIf(noBrowser !== null)("a paid account", () => {
  test.each(["desktop", "phone"] as const)(
    "is made, paid for on the hosted page, and active before one's eyes, on a %s",
    async (size) => {
      const page = await browser.page({ size });
      const email = newEmail();
      await page.goto(server.url);
      await follow(page, "Create a paid account");
      await seeText(page, "no real money moves");
      await page.getByRole("radio", { name: /^business/ }).check();
      await page.getByLabel("Name").fill("Acme");
      await page.getByLabel("E-mail").fill(email);
      await page.getByLabel("Password", { exact: true }).fill("A stamp");
      await browser.inspect(page, "sign-up");
      await page.getByLabel("Password", { exact: true }).fill(goodPassword);
      await press(page, "Create the account");

      await page.waitForURL(/\/pay\/sandbox\//);
      await page.goBack();
      await seeText(page, "Verify a card to activate your plan.");
      await seeText(page, "None are accepted until your account is active.");
      await browser.inspect(page, "plan-pending");
      await follow(page, "Verify a card");
      await pay(page, "Good card");
      await seeHeading(page, "Your payment is being checked");
      await follow(page, "Back to the dashboard");

      await seePath(page, "/plan");
      await seeText(page, "Your card is verified, and the business plan is active.");
      await seeText(page, "expires 12/2030");
      await seeText(page, "0 of 25\u202f000\u202f000");
      await browser.inspect(page, "plan-active");
      // A reload is no return from a payment.
      expect(new URL(page.url()).search).toBe("");
      await page.reload();
      await seeText(page, "Your plan");
      expect(await page.getByText("Your card is verified").count()).toBe(0);
    },
  );

  test("that was made although signing in to it failed is gone on with, unless another address is typed", async () => {
    const page = await browser.page({ size: "phone", provoked: [/^503: .*\/login$/, /^400: .*\/tenants$/] });
    const [taken, email] = [newEmail(), newEmail()];
    const other = { tier: "pro", name: "Other", email: taken, password: goodPassword };
    await ask(`${server.url}/v1/tenants`, "POST", null, other);
    await fillSignUp(page, email);
    await refuseOnce(page, "**/auth/login");
    await press(page, "Create the account");
    await page.getByRole("alert").getByText(busy).waitFor();
    await page.getByLabel("E-mail").fill(taken);
    await press(page, "Create the account");
    await seeText(page, "is already the login of another account");
    await page.getByLabel("E-mail").fill(email);
    await press(page, "Create the account");
    await page.waitForURL(/\/pay\/sandbox\//);
  });

  test.each([
    ["by the stream", "nothing is asked", (page: Page) => page.addInitScript("window.setInterval = () => 0")],
    ["by asking", "the stream is cut", (page: Page) => page.route("**/v1/stream", (route) => route.abort())],
  ] as const)("becomes active while one looks at it, %s where %s, paid in another tab", async (_, __, cut) => {
    const page = await browser.page({ size: "phone", provoked: [/\/v1\/stream/] });
    await page.clock.install();
    await cut(page);
    await signUp(page);
    const paymentPage = page.url();
    await page.goBack();
    await seeText(page, "Waiting for a payment");
    const other = await page.context().newPage();
    await other.goto(paymentPage);
    await pay(other, "Good card");
    await server.logged("payment.settled");
    await page.clock.fastForward(6_000);
    await seeText(page, "Your card is verified, and the pro plan is active.");
  });

  test("says that the payment is being checked for as long as nobody knows", async () => {
    const page = await browser.page({ size: "desktop" });
    await page.clock.install();
    await signUp(page);
    await page.goto(`${server.url}/plan?payment=returned`);
    await seeText(page, "Checking the payment.");
    await browser.inspect(page, "plan-checking");
    const polled = page.waitForResponse(/\/v1\/tenants\/t\w+\/status$/);
    await page.clock.fastForward(5_000);
    expect((await polled).status()).toBe(200);
    await follow(page, "Open the payment page");
    await page.waitForURL(/\/pay\/sandbox\//);
    await follow(page, "Cancel");
    await seeHeading(page, "The payment was cancelled");
    await follow(page, "Back to the dashboard");
    await seeText(page, "Verify a card to activate your plan.");
  });

  test("says why a card was not taken, though its bank paid", async () => {
    const page = await browser.page({ size: "phone" });
    await signUp(page);
    await pay(page, "Once only");
    await follow(page, "Back to the dashboard");
    await seeText(page, "The last card was declined (The card cannot be charged again; use another one).");
    await page.getByRole("link", { name: "Verify a card" }).waitFor();
  });

  test("shows what the server refuses beside the field, and the rules of a password as one types", async () => {
    const page = await browser.page({ size: "phone", provoked: [/^400: .*\/v1\/tenants$/] });
    const email = newEmail();
    const other = { tier: "pro", name: "Acme", email, password: goodPassword };
    await ask(`${server.url}/v1/tenants`, "POST", null, other);
    await page.goto(`${server.url}/sign-up`);
    await page.getByLabel("Name").fill("Acme");
    await page.getByLabel("E-mail").fill(email);
    const password = page.getByLabel("Password", { exact: true });
    await password.fill("stamp");
    await seeText(page, "a lowercase letter: yes");
    await seeText(page, "an uppercase letter: not yet");
    await press(page, "Create the account");
    await seeText(page, "The password does not meet all of these rules yet.");
    await password.and(page.locator(":focus")).waitFor();

    await password.fill(goodPassword);
    await seeText(page, "one of @ # $ % ^ & + = !: yes");
    await press(page, "Create the account");
    await seeText(page, "This is already the login of another account");
    expect(await page.getByLabel("E-mail").getAttribute("aria-invalid")).toBe("true");
    await browser.inspect(page, "sign-up-refused");
  });
});

describe.skipIf(noBrowser !== null)("an upgrade", () => {
  test("of a free account takes an e-mail and a password, a declined card and then a good one", async () => {
    const page = await browser.page({ size: "phone" });
    await signedIn(page, server.url);
    await page.goto(`${server.url}/plan`);
    await seeText(page, "Your plan");
    await browser.inspect(page, "plan-free");
    await press(page, "Upgrade to pro …");
    const email = newEmail();
    await page.getByLabel("E-mail").fill(email);
    await page.getByLabel("New password").fill(goodPassword);
    await seeText(page, "You can then sign in with this e-mail");
    await browser.inspect(page, "upgrade-dialog");
    await inDialog(page).getByRole("button", { name: "Upgrade to pro" }).click();
    await seeText(page, "From now on, sign in with this e-mail and the new password.");
    await browser.inspect(page, "upgrade-pending");
    await press(page, "Later");
    await seeText(page, "until then the limits of the free plan apply");

    await follow(page, "Verify a card");
    await pay(page, "Insufficient funds");
    await page.getByRole("alert").getByText("Insufficient funds. Nothing was charged.").waitFor();
    await pay(page, "Good card");
    await follow(page, "Back to the dashboard");
    await seeText(page, "Your card is verified, and the pro plan is active.");
    await logIn(server.url, email.toUpperCase(), goodPassword);
  });

  test("with a saved card that is declined changes nothing, and is done with another one", async () => {
    const page = await browser.page({ size: "phone", provoked: [/^402: .*\/upgrade$/, /^503: .*\/payment-method$/] });
    await signUp(page);
    await pay(page, "Empty tomorrow");
    await follow(page, "Back to the dashboard");
    await seeText(page, "Your plan");
    await press(page, "Upgrade to business …");
    await inDialog(page).getByText("visa •••• 0341 is charged now").waitFor();
    await press(page, "Upgrade to business");
    await page.getByRole("alert").getByText("Your card was declined (Declined). Nothing has changed.").waitFor();
    await browser.inspect(page, "upgrade-declined");
    await pressRefused(page, "**/payment-method", "Use another card");
    await inDialog(page).getByRole("button", { name: "Use another card" }).click();
    await pay(page, "Good card");
    await follow(page, "Back to the dashboard");
    await seeText(page, "•••• 4081");

    await press(page, "Upgrade to business …");
    await press(page, "Upgrade to business");
    await page.getByRole("status").getByText("The upgrade is complete and paid.").waitFor();
    await seeHeading(page, "Business plan");
  });

  test("waits for a bank that wants to be asked", async () => {
    const page = await browser.page({ size: "desktop" });
    await signUp(page);
    await pay(page, "Careful bank");
    await press(page, "Confirm the payment");
    await follow(page, "Back to the dashboard");
    await seeText(page, "Your plan");
    await press(page, "Upgrade to business …");
    await press(page, "Upgrade to business");
    await seeText(page, "Your bank asks you to confirm the charge.");
    await press(page, "Later");
    await seeText(page, "To be confirmed");
    await follow(page, "Confirm the charge");
    await press(page, "Refuse it");
    await follow(page, "Back to the dashboard");
    await seeText(
      page,
      /^The payment did not go through \(.+\)\. The pro plan and your saved card stay as they were\.$/,
    );
    expect(await page.getByText("Your card is verified").count()).toBe(0);
    await browser.inspect(page, "plan-refused");

    await press(page, "Upgrade to business …");
    await press(page, "Upgrade to business");
    await follow(page, "Open the payment page");
    await press(page, "Confirm the payment");
    await follow(page, "Back to the dashboard");
    await seeHeading(page, "Business plan");
    await seeText(page, "the business plan is active");
  });
});

describe.skipIf(noBrowser !== null)("the plan's page", () => {
  test.each([
    [7_999, "of 10\u202f000", "", null],
    [8_000, "Nearly used up.", "warn", "plan-nearly-used-up"],
    [10_000, "Used up: events are refused", "bad", "plan-used-up"],
  ] as const)("says how near the quota is at %i events", async (used, words, tone, name) => {
    const page = await browser.page({ size: "phone" });
    await signedIn(page, server.url);
    await change(page, "**/v1/tenants/me", { events_this_month: used });
    await page.goto(`${server.url}/plan`);
    await seeText(page, words);
    expect((await page.locator(".meter").getAttribute("class"))?.trim()).toBe(`meter ${tone}`.trim());
    if (name) await browser.inspect(page, name);
  });

  test.each([
    ["past_due", "It is retried automatically in 2 d", "plan-past-due"],
    ["suspended", "Your account is suspended, because a charge failed", "plan-suspended"],
  ] as const)("of an account that is %s names the way out", async (status, words, name) => {
    const page = await browser.page({ size: "desktop" });
    await signUp(page);
    await pay(page, "Good card");
    await follow(page, "Back to the dashboard");
    await seeText(page, "Your plan");
    await change(page, "**/v1/tenants/me", { status });
    const failed = { kind: "subscription", state: "failed", reason: "Insufficient funds", amount_kobo: 1_500_000 };
    await change(page, "**/v1/tenants/billing", {
      status,
      past_due_since: daysFromNow(-1),
      next_attempt_at: daysFromNow(2.01),
      charges: [{ ...failed, reference: "sub-1", created_at: daysFromNow(-1), completed_at: daysFromNow(-1) }],
    });
    await page.reload();
    await seeText(page, words);
    await seeText(page, "(Insufficient funds)");
    expect(await page.getByRole("button", { name: "Upgrade to business …" }).isDisabled()).toBe(true);
    await browser.inspect(page, name);
    await page.getByRole("button", { name: "Use another card" }).first().click();
    await page.waitForURL(/\/pay\/sandbox\//);
  });

  test("that the operator has suspended says why at the top", async () => {
    const page = await browser.page({ size: "phone" });
    const { id } = await signedIn(page, server.url);
    await page.goto(`${server.url}/plan`);
    await seeText(page, "10\u202f000");
    const suspend = `${server.url}/operator/tenants/${id}/suspend`;
    expect((await ask(suspend, "POST", server.operatorToken(), { reason: "Sends spam." })).status).toBe(200);
    await seeText(page, "Their reason: Sends spam.");
    await browser.inspect(page, "plan-suspended-by-operator");
    await change(page, "**/v1/tenants/me", { suspended_by: ["operator", "payment"] });
    await change(page, "**/v1/tenants/billing", { past_due_since: daysFromNow(-8) });
    await page.reload();
    await seeText(page, "Their reason: Sends spam.");
  });

  test("says that it cannot be read, and reads it again", async () => {
    const page = await browser.page({ size: "phone", provoked: [/\/v1\/tenants\/billing/] });
    await signedIn(page, server.url);
    await page.route("**/v1/tenants/billing", (route) => route.abort());
    await page.goto(`${server.url}/plan`);
    await seeText(page, "The server cannot be reached.");
    await browser.inspect(page, "plan-unreachable");
    await page.unroute("**/v1/tenants/billing");
    await press(page, "Try again");
    await seeText(page, "Your plan");
  });
});

describe.skipIf(noBrowser !== null)("the account", () => {
  test("gets another password, and every session but this one ends", async () => {
    const page = await browser.page({ size: "phone", provoked: [/^400: .*\/password$/] });
    const { id, password } = await signedIn(page, server.url);
    const other = await logIn(server.url, id, password);
    await page.goto(`${server.url}/plan`);
    await press(page, "Change the password …");
    await page.getByLabel("Current password").fill("not this one");
    await page.getByLabel("New password").fill(goodPassword);
    await press(page, "Change the password");
    await seeText(page, "This is not the password of this account.");
    await browser.inspect(page, "password-wrong");
    await page.getByLabel("Current password").fill(password);
    await press(page, "Change the password");
    await seeText(page, "Password changed. Every other session has ended.");

    const me = `${server.url}/v1/tenants/me`;
    expect((await ask(me, "GET", other)).status).toBe(401);
    expect((await ask(me, "GET", await tokenOf(page))).status).toBe(200);
    await logIn(server.url, id, goodPassword);
    await page.reload();
    await seeText(page, "Your plan");
  });

  test("keeps its session when a request of before the change is refused after it", async () => {
    const page = await browser.page({ size: "desktop", provoked: [/^401: /] });
    const { password, token } = await signedIn(page, server.url);
    await page.goto(`${server.url}/plan`);
    await seeText(page, "Your plan");
    let changed = () => {};
    const change = new Promise<void>((resolve) => {
      changed = resolve;
    });
    const isOfBefore = (headers: Record<string, string>) => headers.authorization === `Bearer ${token}`;
    await page.route("**/v1/tenants/me", async (route) => {
      if (isOfBefore(route.request().headers())) await change;
      await route.continue();
    });
    const asked = page.waitForRequest("**/v1/tenants/me");
    const refused = page.waitForResponse(
      (response) => response.url().endsWith("/v1/tenants/me") && response.status() === 401,
    );
    await ask(`${server.url}/v1/tenants/api-keys/rotate`, "POST", token);
    await asked;
    // It ends with the old session; once it stood again, the page would call off what is held, and read anew.
    await page.route("**/v1/stream", () => {});
    await press(page, "Change the password …");
    await page.getByLabel("Current password").fill(password);
    await page.getByLabel("New password").fill(goodPassword);
    await press(page, "Change the password");
    await seeText(page, "Password changed.");
    changed();
    await refused;
    await page.reload();
    await seeText(page, "Your plan");
  });

  test.each(["desktop", "phone"] as const)("shows who did what with it, and from where, on a %s", async (size) => {
    const page = await browser.page({ size });
    const { token } = await signedIn(page, server.url);
    const webhooks = [{ webhook_url: "https://shop.example/a-long-path/that/breaks/on/a/phone?token=s3cret" }];
    await ask(`${server.url}/v1/tenants/webhooks`, "PUT", token, webhooks);
    for (let n = 0; n < 9; n++) await ask(`${server.url}/v1/tenants/signing-secret/rotate`, "POST", token);
    await page.goto(`${server.url}/plan`);
    await seeText(page, "Signing secret rotated by the account from 127.0.0.1");
    expect(await page.getByText("Account created").count()).toBe(0);
    await press(page, "Show more");
    await seeText(page, "Account created");
    await seeText(page, "added: https://shop.example/a-long-path/that/breaks/on/a/phone");
    expect(await page.content()).not.toContain("s3cret");
    await browser.inspect(page, "activity");
  });

  test("is deleted once its name was typed", async () => {
    const page = await browser.page({ size: "phone" });
    const { id, password } = await startFreeAccount(page, server.url);
    await press(page, "Send it from here");
    await seeText(page, "Received");
    // Without a place to break.
    await change(page, "**/v1/tenants/me", { tenant_name: "W".repeat(200) });
    await page.goto(`${server.url}/plan`);
    await press(page, "Delete the account …");
    await seeText(page, "all events and their history: 1 delivery");
    const confirm = inDialog(page).getByRole("button", { name: "Delete the account" });
    const typed = page.getByLabel("To confirm, type the account name or the tenant id");
    await typed.fill(id.slice(0, -1));
    expect(await confirm.isDisabled()).toBe(true);
    await browser.inspect(page, "delete-dialog");
    await typed.fill(id);
    await confirm.click();

    await seeText(page, "Your account has been deleted.");
    expect(new URL(page.url()).pathname).toBe("/");
    await browser.inspect(page, "deleted");
    const login = { loginId: id, password };
    expect((await ask(`${server.url}/v1/tenants/auth/login`, "POST", null, login)).status).toBe(401);
  });
});

// ---------------------------------------------------------------- the customer

const newEmail = () => `browser-${crypto.randomUUID().slice(0, 8)}@example.com`;

const daysFromNow = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString();

async function fillSignUp(page: Page, email: string): Promise<void> {
  await page.goto(`${server.url}/sign-up`);
  await page.getByLabel("Name").fill("Acme");
  await page.getByLabel("E-mail").fill(email);
  await page.getByLabel("Password", { exact: true }).fill(goodPassword);
}

/** Makes an account on the pro plan, and stands on the page on which it is paid for. */
async function signUp(page: Page): Promise<void> {
  await fillSignUp(page, newEmail());
  await press(page, "Create the account");
  await page.waitForURL(/\/pay\/sandbox\//);
}

/** Lets an answer say something that would take a month to come true. */
async function change(page: Page, path: string, fields: Record<string, unknown>): Promise<void> {
  await page.route(path, async (route) => {
    const response = await route.fetch();
    await route.fulfill({ response, json: { ...(await response.json()), ...fields } });
  });
}
