import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { type Look, noBrowser, openBrowser } from "./browser.ts";
import { startExecutable } from "./executable.ts";
import { openAccount } from "./signed-in.ts";
import { ask, follow, press, pressRefused, seeHeading, seeText } from "./visitor.ts";

/** What the operator does in a browser, beside looking at the servers. */

const backups = mkdtempSync(join(tmpdir(), "postrider-operator-backups-"));
afterAll(() => rmSync(backups, { recursive: true, force: true }));
const server = await startExecutable({ POSTRIDER_BACKUP_URL: backups, POSTRIDER_BACKUP_CRON: "0 3 * * *" });
const browser = openBrowser(server.url);
const sizes = [["desktop"], ["phone"]] as const;

async function open(size: Look["size"], screen: string, provoked: readonly RegExp[] = []): Promise<Page> {
  const page = await browser.page({ size, provoked: [/^401: /, ...provoked] });
  await page.goto(`${server.url}/operator#${screen}`);
  await page.getByLabel("Operator token").fill(server.operatorToken());
  await press(page, "Sign in");
  return page;
}

const newAccount = async (name: string) => {
  const { json } = await ask(`${server.url}/v1/tenants`, "POST", null, { name });
  return { id: String(json.tenant_id), password: String(json.password) };
};

const operator = (method: string, path: string, body?: unknown) =>
  ask(`${server.url}/operator${path}`, method, server.operatorToken(), body);

/** Runs in the page: whether nothing of it has to be scrolled sideways for. */
const fits = (element: string) => `(({ scrollWidth, clientWidth }) => scrollWidth <= clientWidth)(
  document.querySelector("${element}"),
)`;

describe.skipIf(noBrowser !== null)("the operator's screens", () => {
  test.each(sizes)("the overview says how the server fares, on %s", async (size) => {
    const page = await open(size, "");
    await seeHeading(page, "Overview");
    await seeText(page, "No webhook has been failing for a minute or more.");
    await seeText(page, "until new events are refused");
    await page.route("**/operator/failing-webhooks", (route) =>
      route.fulfill({
        json: {
          webhooks: [
            {
              tenant_id: "t5k2m8q0w3r7xa",
              tenant_name: "Ada's shop",
              webhook_id: "wh_1",
              url: "https://shop.example.com/hook/\u202eevil",
              name: "Shop",
              failing_since: "2026-03-01T08:41:00.000Z",
              disabled_at: null,
            },
          ],
        },
      }),
    );
    await page.reload();
    // What would turn an account's text round is shown to the operator.
    await seeText(page, "https://shop.example.com/hook/⟨U+202E⟩evil");
    await browser.inspect(page, "operator-overview");
  });

  test("the overview says that the place of the backups cannot be reached", async () => {
    const page = await open("desktop", "", [/^503: .*\/backups$/]);
    await seeHeading(page, "Overview");
    const message = "The folder of the backups cannot be read.";
    await page.route("**/operator/backups", (route) =>
      route.fulfill({ status: 503, json: { message, code: "backups_unavailable" } }),
    );
    await page.reload();
    await page.locator("a.failed").getByText(message, { exact: true }).waitFor();
  });

  test("an account that is being measured is read again by itself", async () => {
    const { id } = await newAccount("Large");
    const page = await open("desktop", "accounts");
    await page.clock.install();
    await page.route(
      `**/operator/tenants/${id}`,
      async (route) => {
        const response = await route.fetch();
        await route.fulfill({ response, json: { ...(await response.json()), storage_bytes: null } });
      },
      { times: 1 },
    );
    await page.goto(`${server.url}/operator#accounts/${id}`);
    const storage = page.locator("dt", { hasText: /^Storage$/ }).locator("+ dd");
    await storage.getByText("being measured", { exact: true }).waitFor();
    await page.clock.fastForward(3_000);
    await storage.getByText("0 B", { exact: true }).waitFor();
  });

  test.each(sizes)("an account is found, limited, suspended, looked at and deleted, on %s", async (size) => {
    const name = `Shop on a ${size}`;
    const { id } = await newAccount(name);
    const page = await open(size, "accounts", [/^400: .*limits/, /^503: /]);
    await page.getByLabel("Find").fill(`on a ${size}`);
    await seeText(page, "1 account");
    await browser.inspect(page, "operator-accounts");
    await follow(page, name);
    await seeHeading(page, name);

    await page.getByLabel("Events a month").fill("many");
    await press(page, "Save the limits");
    await seeText(page, "events_per_month must be");
    await page.getByLabel("Events a month").fill("250");
    await press(page, "Save the limits");
    await seeText(page, "of 250;");
    await browser.inspect(page, "operator-account");

    await press(page, "Suspend …");
    await page.getByLabel("Reason").fill("Sends spam.");
    await browser.inspect(page, "operator-suspend");
    await pressRefused(page, "**/suspend", "Suspend");
    await press(page.getByRole("dialog"), "Suspend");
    await seeText(page, "suspended (by you)");
    await seeText(page, "reason: Sends spam.");
    await press(page, "End the suspension");
    await seeText(page, "The suspension has ended.");

    const [tab] = await Promise.all([page.context().waitForEvent("page"), press(page, "View as this account")]);
    await seeText(tab, `You are looking at ${name} as the operator. Nothing can be changed.`);
    expect(tab.url()).toBe(`${server.url}/`);
    // It can be reloaded, and has nothing that would let it change the account.
    await tab.reload();
    await seeText(tab, "Nothing can be changed.");
    await tab.close();

    await press(page, "Delete …");
    const dialog = page.getByRole("dialog");
    expect(await dialog.getByRole("button", { name: "Delete the account" }).isDisabled()).toBe(true);
    await dialog.getByRole("textbox").fill(id);
    await pressRefused(page, `**/operator/tenants/${id}`, "Delete the account");
    await press(dialog, "Delete the account");
    await seeHeading(page, "Accounts");
    expect((await operator("GET", `/tenants/${id}`)).status).toBe(404);
  });

  test("an account's name without a space fits on a phone, wherever it stands", async () => {
    const name = "x".repeat(60);
    const { id } = await newAccount(name);
    const page = await open("phone", `accounts/${id}`);
    await seeHeading(page, name);
    await browser.inspect(page, "operator-long-name");
    await press(page, "Suspend …");
    await page.getByRole("dialog").waitFor();
    expect(await page.evaluate<boolean>(fits("dialog"))).toBe(true);
    await press(page.getByRole("dialog"), "Cancel");
    const [tab] = await Promise.all([page.context().waitForEvent("page"), press(page, "View as this account")]);
    await seeText(tab, "Nothing can be changed.");
    expect(await tab.evaluate<boolean>(fits("html"))).toBe(true);
    await tab.close();
  });

  test("an account's name turns no sentence round that it is part of", async () => {
    const { id } = await newAccount("Ada\u202eshop");
    const shown = "Ada⟨U+202E⟩shop";
    const page = await open("desktop", "accounts");
    await follow(page, shown);
    await seeHeading(page, shown);
    for (const [button, title] of [
      ["Suspend …", `Suspend ${shown}?`],
      ["Reset the password …", `Reset the password of ${shown}?`],
      ["Delete …", `Delete ${shown}?`],
    ] as const) {
      await press(page, button);
      await seeHeading(page, title);
      await press(page.getByRole("dialog"), "Cancel");
    }
    const [tab] = await Promise.all([page.context().waitForEvent("page"), press(page, "View as this account")]);
    await seeText(tab, `You are looking at ${shown} as the operator.`);
    await tab.locator(".who").getByText(shown).waitFor();
    await tab.goto(`${server.url}/plan`);
    await tab.getByRole("definition").getByText(shown).waitFor();
    await tab.close();
    await page.goto(`${server.url}/operator#accounts/${id}`);
    await press(page, "Delete …");
    await page.getByLabel(`Type ${id} to go on`).fill(id);
    await press(page, "Delete the account");
    await seeText(page, `${shown} is deleted.`);
  });

  test("what is refused for good is said in a sentence, without a button to try it again", async () => {
    const { id } = await newAccount("Secretive");
    const page = await open("desktop", "accounts/tnope", [/^40[34]: /]);
    const alert = (on: Page) => on.getByRole("main").getByRole("alert");
    await alert(page).getByText("The tenant does not exist.").waitFor();
    expect(await alert(page).getByRole("button").count()).toBe(0);
    await browser.inspect(page, "operator-no-account");
    await page.goto(`${server.url}/operator#accounts/${id}`);
    const [tab] = await Promise.all([page.context().waitForEvent("page"), press(page, "View as this account")]);
    await seeText(tab, "Nothing can be changed.");
    await tab.goto(`${server.url}/keys`);
    await alert(tab).getByText("The operator only looks at this account, and its secrets are not shown.").waitFor();
    expect(await alert(tab).getByRole("button").count()).toBe(0);
    await tab.close();
  });

  test("whoever views an account can press nothing that would change it, and is told why", async () => {
    const account = await openAccount(server.url);
    const { url } = await account.get<{ url: string }>("/v1/inbox");
    await account.setWebhooks({ webhook_url: url, name: "Inbox" });
    const [webhook] = await account.get<{ id: string }[]>("/v1/tenants/webhooks?expand=true");
    const event = await account.ingest({ order: 1 });
    const page = await open("desktop", `accounts/${account.id}`);
    const [tab] = await Promise.all([page.context().waitForEvent("page"), press(page, "View as this account")]);
    await seeText(tab, "Nothing can be changed.");
    const off: Readonly<Record<string, readonly (string | RegExp)[]>> = {
      [`/webhooks/${webhook?.id}`]: ["Send a test event", "Pause", "Save settings"],
      "/webhooks": ["Send a test event", "Edit Inbox", "Remove Inbox", "Add a webhook"],
      "/events": [/^Replay /],
      [`/events/${event}`]: ["Replay"],
      "/replays": [/^Replay/],
      "/inbox": ["Empty the inbox"],
      "/plan": ["Change the password …", "Delete the account …"],
    };
    for (const [path, names] of Object.entries(off)) {
      await tab.goto(server.url + path);
      for (const name of names) {
        const button = tab.getByRole("main").getByRole("button", { name });
        expect(await button.getAttribute("title"), `${path} ${name}`).toStartWith("Read-only: ");
        expect(await button.isDisabled(), `${path} ${name}`).toBe(true);
      }
    }
    await tab.goto(`${server.url}/inbox`);
    expect(await tab.getByLabel("Status").isDisabled()).toBe(true);
    await tab.goto(`${server.url}/events/${event}`);
    await tab.getByRole("button", { name: "Replay", exact: true }).waitFor();
    await tab.keyboard.press("?");
    const shortcuts = tab.getByRole("dialog");
    await shortcuts.getByText("Copy this event as curl").waitFor();
    expect(await shortcuts.getByText("Replay this event").count()).toBe(0);
    await tab.close();
  });

  test("a password is reset and shown once, and an account is made", async () => {
    const { id } = await newAccount("Forgetful");
    const page = await open("desktop", `accounts/${id}`, [/^503: .*\/reset-password$/]);
    await press(page, "Reset the password …");
    await pressRefused(page, "**/reset-password", "Reset the password");
    await press(page.getByRole("dialog"), "Reset the password");
    const password = await page.getByRole("dialog").locator("code").textContent();
    const login = await ask(`${server.url}/v1/tenants/auth/login`, "POST", null, { loginId: id, password });
    expect(login.status).toBe(200);
    await press(page, "I have it");
    await follow(page, "All accounts");
    await press(page, "Create an account …");
    await page.getByLabel("Name").fill("Made here");
    await press(page.getByRole("dialog"), "Create");
    await seeHeading(page, "Password of Made here");
    await press(page, "I have it");
    await seeHeading(page, "Made here");
  });

  test("a password that is being reset is shown although the dialog was closed", async () => {
    const { id } = await newAccount("Hasty");
    const page = await open("desktop", `accounts/${id}`);
    const cancelled = Promise.withResolvers<void>();
    await page.route("**/reset-password", async (route) => {
      await cancelled.promise;
      await route.continue();
    });
    await press(page, "Reset the password …");
    await press(page.getByRole("dialog"), "Reset the password");
    await press(page.getByRole("dialog"), "Cancel");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    cancelled.resolve();
    await seeHeading(page, "New password of Hasty");
  });

  test.each(sizes)("a backup is made and verified, on %s", async (size) => {
    const page = await open(size, "backups");
    await press(page, "Back up now");
    await seeText(page, "restores");
    await browser.inspect(page, "operator-backups");
  });

  test.each(sizes)("the audit and the settings are shown, on %s", async (size) => {
    const page = await open(size, "audit");
    await page.getByRole("cell").getByText("operator.login").first().waitFor();
    await page.getByLabel("What", { exact: true }).selectOption("operator.login");
    await seeText(page, "the server");
    await browser.inspect(page, "operator-audit");
    await page.goto(`${server.url}/operator#payments`);
    await seeText(page, "Nothing has been charged yet.");
    await page.goto(`${server.url}/operator#settings`);
    await seeText(page, "POSTRIDER_BACKUP_CRON");
    await browser.inspect(page, "operator-settings");
  });
});
