import { afterAll, describe, expect, test } from "bun:test";
import type { Page } from "playwright-core";
import { startReceiver } from "../support/receiver.ts";
import { noBrowser, openBrowser } from "./browser.ts";
import { startExecutable } from "./executable.ts";
import { type Account, openAccount } from "./signed-in.ts";
import { ask, follow, pay, press, seeHeading, seeText, signIn, tokenOf } from "./visitor.ts";

const server = await startExecutable();
const browser = openBrowser(server.url);

/** What the receiver answers: as its path says, `/503` with 503. */
const receiver = startReceiver({
  answer: ({ path }) => {
    const status = Number(path.slice(1)) || 204;
    return new Response(status === 204 ? null : `{"error":"upstream down","status":${status}}`, { status });
  },
});
afterAll(() => receiver.stop());

const refused = /^400: .*\/v1\/tenants\/webhooks$/;
const tooMany = /^429: .*\/test$/;

describe.skipIf(noBrowser !== null)("the webhooks' page", () => {
  test.each(["desktop", "phone"] as const)(
    "registers a first webhook, with what is wrong next to its field, on a %s",
    async (size) => {
      const { page, account } = await open({ size, provoked: [refused] });
      await seeText(page, "No webhooks yet. Events are stored, but not delivered.");
      await seeText(page, "0 of 1 on the free plan");
      await browser.inspect(page, "webhooks-empty");

      await press(page, "Add a webhook");
      await seeFocusOnUrl(page);
      await page.getByLabel("URL").fill("http://shop.example/hook");
      await page.getByLabel("Name").fill("Shop");
      await press(page, "Save changes");
      await fieldSays(page, "URL", /^The URL must start with "https:\/\/"/);
      await browser.inspect(page, "webhooks-refused");

      await page.getByLabel("Name").fill("Our shop");
      await fieldSays(page, "URL", /^The URL must start with "https:\/\/"/);
      // What was refused is no longer there.
      await page.getByLabel("URL").fill("https://shop.example/hook");
      await page.locator('[aria-invalid="true"]').waitFor({ state: "detached" });
      await page.getByLabel("URL").fill(`${receiver.url}/204`);
      await page.getByLabel("URL").press("Enter");
      await seeText(page, "Webhooks saved.");
      await seeText(page, "No recent deliveries to judge by. Tests are not counted.");
      await seeText(page, "1 of 1 on the free plan");
      expect(await urlsOf(account)).toEqual([`${receiver.url}/204`]);
    },
  );

  test("has room for more as soon as the operator allows more", async () => {
    const { page, account } = await open({ size: "desktop", webhook: "/204" });
    await seeText(page, "Your account may have 1 webhook.");
    const limits = `${server.url}/operator/tenants/${account.id}/limits`;
    expect((await ask(limits, "PUT", server.operatorToken(), { webhooks: 4 })).status).toBe(200);
    await page.getByText(/^1 of 4 on the free plan/).waitFor();
    expect(await page.getByRole("button", { name: "Add a webhook" }).isEnabled()).toBe(true);
  });

  test("shows the plan's limit, and the way to another plan", async () => {
    const { page } = await open({ size: "desktop", webhook: "/204" });
    await seeText(page, "Your account may have 1 webhook.");
    expect(await page.getByRole("button", { name: "Add a webhook" }).isDisabled()).toBe(true);
    expect(await page.getByRole("button", { name: "Add the inbox" }).isDisabled()).toBe(true);
    await page.getByRole("link", { name: "See the plan" }).first().click();
    await page.waitForURL(`${server.url}/plan`);
  });

  test("takes the inbox by one click", async () => {
    const { page, account } = await open({ size: "phone" });
    await press(page, "Use the inbox");
    await seeText(page, "The inbox is now a webhook.");
    const { url } = await account.get<{ url: string }>("/v1/inbox");
    expect(await urlsOf(account)).toEqual([url]);
    await follow(page, "Open the inbox");
    await seeText(page, /^\s*In use$/);
  });

  test.each(["desktop", "phone"] as const)("says how the latest deliveries went, live, on a %s", async (size) => {
    const { page, account } = await open({ size, webhook: "/204" });
    await account.ingestAll([{ n: 1 }, { n: 2 }, { n: 3 }]);
    await seeText(page, "100 % success");
    await page.getByRole("img", { name: "Of the deliveries: 3 delivered" }).waitFor();
    await account.setWebhooks({ webhook_url: `${receiver.url}/404` });
    await account.ingest({ n: 4 });
    await seeText(page, "0 % success");
    await seeText(page, "HTTP 404 from the webhook");
    await seeText(page, /^Failing since \d\d:\d\d$/);
    await browser.inspect(page, "webhooks");
    await follow(page, "See its events");
    await page.waitForURL(/\/events\?webhook=wh_/);
  });

  test.each([
    ["/204", "Acknowledged", "Any 2xx acknowledges the delivery."],
    ["/404", "Refused", "A 4xx other than 429 is a permanent failure: the delivery is not retried."],
    ["/503", "Not delivered", "After a 5xx, the delivery is retried."],
  ] as const)("sends a test event and shows the answer at once: %s", async (path, word, rule) => {
    const { page } = await open({ size: "desktop", webhook: path });
    await press(page, "Send a test event");
    await seeText(page, word);
    await seeText(page, new RegExp(`^${path.slice(1)} after (< 1|\\d+) ms$`));
    await seeText(page, rule);
    await seeText(
      page,
      path === "/204" ? "The response had no body." : `{"error":"upstream down","status":${path.slice(1)}}`,
    );
    const { headers, path: received } = receiver.requests.at(-1) ?? {};
    expect([received, headers?.get("service-event-id")]).toEqual([path, expect.stringMatching(/^evt_/)]);
    if (path === "/503") await browser.inspect(page, "webhooks-test");
  });

  test("says in words why a test event was not answered", async () => {
    const { page, account } = await open({ size: "phone" });
    const closed = startReceiver();
    await closed.stop();
    await account.setWebhooks({ webhook_url: closed.url });
    await press(page, "Send a test event");
    await seeText(page, /^No response after/);
    await seeText(page, "Connection refused by the webhook. Without a response, the delivery is retried.");
    await browser.inspect(page, "webhooks-test-unanswered");
  });

  test("names a long URL that another one replaces on a phone as wide as it is", async () => {
    const { page } = await open({ size: "phone", webhook: `/${"x".repeat(300)}` });
    await press(page, /^Edit /);
    await page.getByLabel("URL").fill(`${receiver.url}/other`);
    await seeText(page, "A new URL makes a new webhook:");
    await browser.inspect(page, "webhooks-edited-long-url");
  });

  test("says how long to wait after too many test events", async () => {
    const { page, account } = await open({ size: "desktop", webhook: "/204", provoked: [tooMany] });
    const [webhook] = await account.get<{ id: string }[]>("/v1/tenants/webhooks");
    for (let i = 0; i < 10; i += 1) await account.post(`/v1/tenants/webhooks/${webhook?.id}/test`, {});
    await press(page, "Send a test event");
    await seeText(page, /^You can try again in (\d+ s|1 min 0 s)\.$/);
    expect(await page.getByRole("button", { name: "Send a test event" }).isDisabled()).toBe(true);
    await browser.inspect(page, "webhooks-test-too-many");
  });

  test.each(["desktop", "phone"] as const)(
    "removes a webhook only when that is saved, and says before what fails then, on a %s",
    async (size) => {
      const { page, account } = await open({ size, webhook: "/503", name: "Shop" });
      await account.ingestAll([{ n: 1 }, { n: 2 }]);
      await seeText(page, "2 waiting");
      await press(page, "Remove Shop");
      await seeText(page, "Removed when you save.");
      await seeText(page, "2 deliveries waiting for it will fail.");
      await browser.inspect(page, "webhooks-removed");
      await account.ingest({ n: 3 });
      await seeText(page, "3 deliveries waiting for it will fail.");
      await press(page, "Undo, keep Shop");
      await page.getByText("Not saved yet").waitFor({ state: "detached" });

      await press(page, "Remove Shop");
      await press(page, "Save changes");
      await seeText(page, "No webhooks yet.");
      expect(await urlsOf(account)).toEqual([]);
    },
  );

  test("keeps what is not saved while one looks elsewhere, and says so there", async () => {
    const { page, account } = await open({ size: "desktop", webhook: "/204" });
    await press(page, `Edit ${receiver.url}/204`);
    await seeFocusOnUrl(page);
    await page.getByLabel("Name").fill("Orders");
    await follow(page, "Events");
    await seeText(page, "You have unsaved changes to your webhooks.");
    await follow(page, "Back to them");
    expect(await page.getByLabel("Name").inputValue()).toBe("Orders");
    await seeText(page, "1 changed");

    const asked = page.waitForEvent("dialog");
    await page.evaluate("void setTimeout(() => location.reload())");
    const dialog = await asked;
    expect(dialog.type()).toBe("beforeunload");
    await dialog.dismiss();

    await press(page, "Discard");
    await seeText(page, "No recent deliveries to judge by. Tests are not counted.");
    expect(await account.get("/v1/tenants/webhooks")).toMatchObject([{ name: "" }]);
    await follow(page, "Events");
    await page.waitForURL(`${server.url}/events`);
    expect(await page.getByText("You have unsaved changes to your webhooks.").count()).toBe(0);
  });

  test("does not tell another account what the one before has not saved", async () => {
    const { page, account } = await open({ size: "desktop", webhook: "/204", provoked: [/^401: /] });
    const notice = page.getByText("You have unsaved changes to your webhooks.");
    await press(page, `Edit ${receiver.url}/204`);
    await seeFocusOnUrl(page);
    await page.getByLabel("Name").fill("Orders");
    await follow(page, "Events");
    for (const { id, password, isSame } of [
      { ...account, isSame: true },
      { ...(await openAccount(server.url)), isSame: false },
    ]) {
      await notice.waitFor();
      await ask(`${server.url}/v1/tenants/auth/logout`, "POST", await tokenOf(page), { all: true });
      await seeText(page, "Your session has ended.");
      await signIn(page, id, password);
      await seeHeading(page, "Events");
      expect(await notice.count()).toBe(isSame ? 1 : 0);
    }
  });

  test("goes on counting what waits for a webhook that was disabled, until all of it has ended", async () => {
    const { page, account } = await open({ size: "desktop", webhook: "/410", name: "Shop" });
    // As if thousands waited: they still do when the page first looks again.
    let looks = Number.POSITIVE_INFINITY;
    await page.route(/\/v1\/tenants\/webhooks\/health/, async (route) => {
      const response = await route.fetch();
      const health = (await response.json()) as object[];
      looks -= 1;
      await route.fulfill({ response, json: health.map((one) => ({ ...one, ...(looks > 0 && { pending: 100 }) })) });
    });
    await account.ingestAll([{ n: 1 }, { n: 2 }, { n: 3 }]);
    await seeText(page, "3 failed, 100 waiting");
    looks = 3;
    await page.getByText("100 waiting").waitFor({ state: "detached" });
  });

  test("tells two webhooks apart: what waits for which, and which one makes room for the inbox", async () => {
    const { page, account } = await openBusiness();
    await account.setWebhooks(
      { webhook_url: `${receiver.url}/503`, name: "Shop" },
      { webhook_url: `${receiver.url}/204` },
    );
    await account.ingestAll([{ n: 1 }, { n: 2 }]);
    await page.goto(`${server.url}/webhooks`);
    await seeText(page, "2 of 2 on the business plan");
    await seeText(page, "2 waiting");
    await press(page, `Remove ${receiver.url}/204`);
    await seeText(page, "No deliveries are waiting for it.");
    await press(page, "Remove Shop");
    await seeText(page, "2 deliveries waiting for it will fail.");
    await browser.inspect(page, "webhooks-business");
    await press(page, "Discard");

    await follow(page, "Inbox");
    await press(page, "Use as webhook");
    await seeText(page, "may have 2 webhooks, all of which are in use");
    await page.getByRole("radio", { name: /\/204$/ }).check();
    await browser.inspect(page, "inbox-replace-one-of-two");
    await press(page, "Replace it");
    await seeText(page, /^\s*In use$/);
    expect(await account.get("/v1/tenants/webhooks")).toMatchObject([{ name: "Shop" }, { name: "Inbox" }]);
  });

  test("follows a list that was saved elsewhere, without losing what is being edited", async () => {
    const { page, account } = await open({ size: "desktop", webhook: "/204", name: "Shop" });
    await press(page, "Edit Shop");
    await seeFocusOnUrl(page);
    await page.getByLabel("URL").fill(`${receiver.url}/204?edited`);
    await account.setWebhooks({ webhook_url: `${receiver.url}/204`, name: "Renamed" });
    await seeText(page, "is removed.");
    expect(await page.getByLabel("URL").inputValue()).toBe(`${receiver.url}/204?edited`);
    await press(page, "Discard");
    await page.getByRole("heading", { name: "Renamed" }).waitFor();
  });
});

interface Opened {
  size: "desktop" | "phone";
  /** Path of a webhook at the receiver that is registered already. */
  webhook?: string;
  name?: string;
  provoked?: readonly RegExp[];
}

async function open({ size, webhook, name = "", provoked = [] }: Opened): Promise<{ page: Page; account: Account }> {
  const account = await openAccount(server.url);
  if (webhook !== undefined) await account.setWebhooks({ webhook_url: receiver.url + webhook, name });
  const page = await browser.page({ size, provoked });
  await account.signIn(page);
  await page.goto(`${server.url}/webhooks`);
  await page.getByText(/\d of 1 on the free plan/).waitFor();
  await page.getByText("Live", { exact: true }).waitFor();
  return { page, account };
}

/** A paid account, whose plan has room for two webhooks. */
async function openBusiness(): Promise<{ page: Page; account: Account }> {
  const account = await openAccount(server.url);
  const page = await browser.page({ size: "desktop" });
  const upgrade = { tier: "business", email: `${account.id}@example.com`, password: "A stamp for 1 letter!" };
  const { json } = await ask(`${server.url}/v1/tenants/upgrade`, "POST", account.jwt, upgrade);
  await page.goto(String(json.payment_url));
  await pay(page, "Good card");
  await server.logged("payment.settled");
  await account.signIn(page);
  return { page, account };
}

const urlsOf = async (account: Account) =>
  (await account.get<{ url: string }[]>("/v1/tenants/webhooks")).map(({ url }) => url);

/** A field that opens takes the focus with the next picture. */
const seeFocusOnUrl = (page: Page) => page.getByLabel("URL").and(page.locator(":focus")).waitFor();

/** What stands under a field, where a screen reader finds it too. */
async function fieldSays(page: Page, label: string, text: RegExp): Promise<void> {
  const field = page.getByLabel(label);
  await page.locator('[aria-invalid="true"]').waitFor();
  const described = await field.getAttribute("aria-describedby");
  expect(await page.locator(`[id="${described}"]`).textContent()).toMatch(text);
}
