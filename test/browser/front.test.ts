import { describe, expect, test } from "bun:test";
import type { Page } from "playwright-core";
import { noBrowser, openBrowser } from "./browser.ts";
import { startExecutable } from "./executable.ts";
import {
  ask,
  createFreeAccount,
  follow,
  logIn,
  press,
  seeHeading,
  seePath,
  seeText,
  signIn,
  startFreeAccount,
} from "./visitor.ts";

const server = await startExecutable();
const browser = openBrowser(server.url);

const closedServer = await startExecutable({ POSTRIDER_SIGNUP: "closed" });
const closedBrowser = openBrowser(closedServer.url);

const unpaidServer = await startExecutable({ POSTRIDER_PAYMENTS: "off" });
const unpaidBrowser = openBrowser(unpaidServer.url);

const clipboard = ["clipboard-read", "clipboard-write"] as const;
const readClipboard = (page: Page) => page.evaluate<string>("navigator.clipboard.readText()");

describe.skipIf(noBrowser !== null)("the first visit", () => {
  test.each(["desktop", "phone"] as const)(
    "leads from nothing to a delivery before one's eyes, on a %s",
    async (size) => {
      const page = await browser.page({ size, permissions: clipboard });
      await page.goto(server.url);
      await seeText(page, "Postrider is for developers");
      await page.getByRole("button", { name: "Create a free account" }).waitFor();
      await browser.inspect(page, "start");

      const { id, password } = await createFreeAccount(page, server.url);
      await seeText(page, "The password is shown only now.");
      await press(page, "Copy the password");
      expect(await readClipboard(page)).toBe(password);
      await press(page, "Copy the tenant id");
      expect(await readClipboard(page)).toBe(id);
      await keepPassword(page, { id, password });
      await hideCredentials(page);
      await browser.inspect(page, "new-account");

      await press(page, "I saved it");
      await seePath(page, "/welcome");
      await seeText(page, "Waiting for your first event.");
      await seeText(page, "Your webhook, for now, is the inbox");
      await seeText(page, "Paste this into a shell on this machine:");
      expect(await page.content()).not.toContain(password);
      await browser.inspect(page, "welcome");

      if (size === "desktop") await runInShell(page);
      else await press(page, "Send it from here");
      for (const word of ["Accepted", "Delivered", "to your inbox", "Received", "The signature verifies."])
        await seeText(page, word);
      await seeText(page, '"payload":{"event_type"');
      await browser.inspect(page, "welcome-delivered");

      await follow(page, "See the event");
      await page.waitForURL(/\/events\/evt_/);
    },
  );

  test("shows the password of the new account again after a step back, until one has signed in", async () => {
    const page = await browser.page({ size: "phone" });
    await page.goto(`${server.url}/sign-in`);
    await follow(page, "Create an account");
    await press(page, "Create a free account");
    const password = page.getByLabel("Password", { exact: true });
    await seeHeading(page, "Your account is ready");
    const shown = await password.inputValue();
    await page.goBack();
    await seeHeading(page, "Sign in");
    const question = page.waitForEvent("dialog");
    const closing = page.close({ runBeforeUnload: true });
    await (await question).dismiss();
    await closing;
    await page.goForward();
    await seeHeading(page, "Your account is ready");
    expect(await password.inputValue()).toBe(shown);

    await press(page, "I saved it");
    await seeHeading(page, "Send your first event");
    await press(page, "More");
    await press(page, "Sign out");
    await follow(page, "Create an account");
    await page.getByRole("button", { name: "Create a free account" }).waitFor();
  });

  test("makes the inbox the webhook, and leaves a list alone that was emptied on purpose", async () => {
    const page = await browser.page({ size: "desktop" });
    const { id, password } = await startFreeAccount(page, server.url);
    const token = await logIn(server.url, id, password);
    const webhooks = async () => (await ask<unknown[]>(`${server.url}/v1/tenants/webhooks`, "GET", token)).json;
    expect(await webhooks()).toMatchObject([{ name: "Inbox", url: expect.stringContaining("/inbox/") }]);

    await press(page, "Send it from here");
    await seeText(page, "Delivered");
    await ask(`${server.url}/v1/tenants/webhooks`, "PUT", token, []);
    await page.reload();
    await seeText(page, "No webhook is registered");
    expect(await webhooks()).toEqual([]);
    await press(page, "Use the inbox as a webhook");
    await seeText(page, "Your webhook, for now, is the inbox");
    expect(await webhooks()).toMatchObject([{ name: "Inbox" }]);
  });

  test("says so when the signature of a delivery does not fit", async () => {
    const page = await browser.page({ size: "phone" });
    // Never from the browser's cache, whose answers carry a time long past.
    await page.route("**/jwks.json?at=*", async (route) => {
      const response = await route.fetch();
      const { keys } = (await response.json()) as { keys: { x: string }[] };
      // The public key of RFC 8037, appendix A.2, which signed nothing here.
      const x = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";
      await route.fulfill({ response, json: { keys: keys.map((key) => ({ ...key, x })) } });
    });
    await startFreeAccount(page, server.url);
    await press(page, "Send it from here");
    await seeText(page, "Not genuine");
    await seeText(page, "Service-Signature does not match.");
    await browser.inspect(page, "welcome-forged");
  });

  test("gives the command that forwards to a laptop, filled in", async () => {
    const page = await browser.page({ size: "desktop", permissions: clipboard });
    const { id } = await startFreeAccount(page, server.url);
    await press(page, "Copy the command that forwards to your laptop");
    const command = (await readClipboard(page)).replaceAll(/\s*\\\s+/g, " ");
    expect(command).toBe(
      `postrider listen --server '${server.url}' --login ${id} --forward-to http://localhost:3000/hook`,
    );
  });

  test("says why no account can be made, and how long it lasts", async () => {
    const page = await browser.page({ size: "phone", provoked: [/^429: .*\/v1\/tenants$/] });
    await page.route("**/v1/tenants", (route) =>
      route.fulfill({
        status: 429,
        headers: { "Retry-After": "1800" },
        json: {
          code: "too_many_accounts",
          message:
            "At most 60 accounts an hour can be created from one address; retry after the number of seconds in Retry-After.",
        },
      }),
    );
    await page.goto(server.url);
    await press(page, "Create a free account");
    await seeText(page, "Too many accounts were created from your network in the last hour.");
    await seeText(page, /You can try again in (30 min|29 min \d+ s)\./);
    expect(await page.getByRole("button", { name: "Create a free account" }).isDisabled()).toBe(true);
    await browser.inspect(page, "start-too-many");
  });

  test("says that the server cannot be reached, and asks it again", async () => {
    const page = await browser.page({ size: "desktop", provoked: [/\/v1\/about/] });
    await page.route("**/v1/about", (route) => route.abort());
    await page.goto(server.url);
    await seeText(page, "The server cannot be reached.");
    await browser.inspect(page, "start-unreachable");
    await page.unroute("**/v1/about");
    await press(page, "Try again");
    await page.getByRole("button", { name: "Create a free account" }).waitFor();
  });

  test("offers no account where the operator makes them", async () => {
    const page = await closedBrowser.page({ size: "phone" });
    await page.goto(closedServer.url);
    await seeText(page, "Sign-up is closed on this server");
    expect(await page.getByRole("button").count()).toBe(0);
    await closedBrowser.inspect(page, "start-closed");
    await page.goto(`${closedServer.url}/sign-up`);
    await seeText(page, "Sign-up is closed on this server");
    expect(await page.getByRole("button").count()).toBe(0);
  });

  test("offers no paid plan where none can be paid", async () => {
    const page = await unpaidBrowser.page({ size: "desktop" });
    await page.goto(unpaidServer.url);
    await page.getByRole("button", { name: "Create an account" }).waitFor();
    expect(await page.getByRole("link", { name: "Create a paid account" }).count()).toBe(0);
    await page.goto(`${unpaidServer.url}/sign-up`);
    await page.waitForURL(`${unpaidServer.url}/`);
    await press(page, "Create an account");
    await page.getByText("Password").first().waitFor();
  });
});

describe.skipIf(noBrowser !== null)("signing in", () => {
  test("takes the id, at the view that was asked for", async () => {
    const { id, password } = await openAccount();
    const page = await browser.page({ size: "phone" });
    await page.goto(`${server.url}/keys`);
    await seeHeading(page, "Sign in");
    await browser.inspect(page, "sign-in");
    await signIn(page, ` ${id} `, password);
    await seeHeading(page, "API keys");
    expect(new URL(page.url()).pathname).toBe("/keys");
  });

  test("at its own address leads to the overview, and needs no second time", async () => {
    const { id, password } = await openAccount();
    const page = await browser.page({ size: "desktop" });
    await page.goto(server.url);
    await follow(page, "Sign in");
    await signIn(page, id, password);
    await seePath(page, "/");
    await seeHeading(page, "Overview");
    await page.goto(`${server.url}/sign-in`);
    await seeHeading(page, "Overview");
  });

  test("says what is wrong, and after ten times how long to wait", async () => {
    const { id } = await openAccount();
    const page = await browser.page({ size: "phone", provoked: [/^(401|429): .*\/auth\/login$/] });
    await page.clock.install();
    await page.goto(`${server.url}/sign-in`);
    await signIn(page, id, "not this one");
    await seeText(page, "The id or the password is wrong.");
    await browser.inspect(page, "sign-in-wrong");
    for (let i = 0; i < 9; i++) {
      await ask(`${server.url}/v1/tenants/auth/login`, "POST", null, { loginId: id, password: "nor this" });
    }
    await press(page, "Sign in");
    await seeText(page, "Too many failed sign-ins.");
    const timer = page.getByRole("timer");
    const button = page.getByRole("button", { name: "Sign in" });
    expect(await timer.textContent()).toMatch(/^You can try again in 1[45] min( \d+ s)?\.$/);
    expect(await button.isDisabled()).toBe(true);
    await browser.inspect(page, "sign-in-too-many");

    await page.clock.fastForward("10:00");
    await timer.getByText(/^You can try again in [45] min( \d+ s)?\.$/).waitFor();
    await page.clock.fastForward("05:00");
    await timer.getByText("You can try again now.").waitFor();
    expect(await button.isEnabled()).toBe(true);
  });
});

// ---------------------------------------------------------------- the visitor

async function openAccount(): Promise<{ id: string; password: string }> {
  const { json } = await ask(`${server.url}/v1/tenants`, "POST", null, {});
  return { id: String(json.tenant_id), password: String(json.password) };
}

/** What managers of passwords go by, and what people do who have none. */
async function keepPassword(page: Page, { id, password }: { id: string; password: string }): Promise<void> {
  const form = page.locator("form");
  const field = form.locator("input[autocomplete=new-password]");
  expect(await form.locator("input[autocomplete=username]").inputValue()).toBe(id);
  expect(await field.getAttribute("type")).toBe("password");
  expect(await field.isEditable()).toBe(true);
  await field.fill("something else");
  expect(await field.inputValue()).toBe(password);
  await press(page, "Reveal the password");
  expect(await field.getAttribute("type")).toBe("text");
  const downloading = page.waitForEvent("download");
  await press(page, "Download the id and the password");
  const file = await downloading;
  expect(file.suggestedFilename()).toBe(`postrider-${id}.txt`);
  expect(await Bun.file(await file.path()).text()).toBe(
    `Postrider: ${server.url}\nTenant id: ${id}\nPassword: ${password}\n`,
  );
}

/** Screenshots are kept. */
const hideCredentials = (page: Page) =>
  page.evaluate("for (const field of document.querySelectorAll('.credentials input')) field.value = '••••'");

/** Pastes the request into a shell as it was copied, where there is one that can send it. */
async function runInShell(page: Page): Promise<void> {
  await press(page, "Copy the request, with the whole key");
  const command = await readClipboard(page);
  expect(command).toMatch(/^curl '.*svc_sk_[0-9A-Za-z]{40}'/s);
  expect(await page.content()).not.toMatch(/svc_sk_[0-9A-Za-z]{40}/);
  if (Bun.which("sh") === null || Bun.which("curl") === null) return press(page, "Send it from here");
  const { stdout } = Bun.spawnSync(["sh", "-c", command], { stderr: "ignore" });
  expect(JSON.parse(stdout.toString())).toMatchObject({ status: "accepted" });
  await seeText(page, '"total": 12.50}');
}
