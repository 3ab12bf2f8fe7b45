import { describe, expect, test } from "bun:test";
import type { Page } from "playwright-core";
import { type Look, noBrowser, openBrowser } from "./browser.ts";
import { startExecutable } from "./executable.ts";
import { openAccount } from "./signed-in.ts";
import { ask, follow, press, pressRefused, refuseOnce, seeHeading, seeText } from "./visitor.ts";

const server = await startExecutable();
const browser = openBrowser(server.url);

/** Shows that the body is as it was sent: no parser keeps these. */
const payload = '{"big": 12345678901234567890, "price": 1.0, "text": "<b>not markup</b>"}';

describe.skipIf(noBrowser !== null)("the inbox", () => {
  test.each(["desktop", "phone"] as const)(
    "becomes a webhook by one click, and an event arrives before one's eyes, on a %s",
    async (size) => {
      const { page, account } = await open({ size });
      await seeText(page, "Nothing has arrived yet. Press “Use as webhook” above");
      await browser.inspect(page, "inbox-empty");
      await press(page, "Use as webhook");
      await seeText(page, /^\s*In use$/);
      await seeText(page, /^Nothing has arrived yet\.$/);

      const eventId = await account.ingest(payload);
      await arrivals(page, 1);
      if (size === "phone") await page.locator(".inbox-row").click();
      await seeText(page, "The signature verifies");
      await seeText(page, "Responded with 204");
      expect(await rowOf(page, "Service-Event-Id")).toBe(eventId);
      expect(await page.locator("pre.body").textContent()).toContain(`"payload":${payload}}`);
      await press(page, "Formatted");
      await seeText(page, "12345678901234567890");
      expect(await page.locator("pre.body").textContent()).toContain('\n    "price": 1.0,');
      await page.getByText("The signature verifies").click();
      for (const check of ["Service-Signature", "webhook-signature, v1", "webhook-signature, v1a"]) {
        await page.getByRole("listitem").filter({ hasText: check }).filter({ hasText: "Valid." }).first().waitFor();
      }
      await browser.inspect(page, "inbox-delivery");

      await follow(page, "See the event");
      await page.waitForURL(`${server.url}/events/${eventId}`);
      await page.goBack();
      if (size === "phone") await follow(page, "Back to the inbox");
      await arrivals(page, 1);
      await browser.inspect(page, "inbox");
    },
  );

  test("sends itself a test event", async () => {
    const { page } = await open({ size: "phone", isUsed: true });
    await press(page, "Send a test event");
    await arrivals(page, 1);
    await page.locator(".inbox-row").click();
    await seeText(page, "test event");
    await seeText(page, "The signature verifies");
    expect(await page.getByRole("link", { name: "See the event" }).count()).toBe(0);
  });

  test("does not say of a test event that it is retried", async () => {
    const { page } = await open({ size: "desktop", isUsed: true });
    await saved(page, () => page.getByLabel("Status").selectOption({ label: "503 Unavailable" }));
    await press(page, "Send a test event");
    await arrivals(page, 1);
    await page.locator(".inbox-row").click();
    await page.locator(".arrived").getByText("Tests are never retried.").waitFor();
  });

  test.each(["desktop", "phone"] as const)("replaces the one webhook after saying which, on a %s", async (size) => {
    const { page, account } = await open({ size, provoked: [/^503: .*\/webhooks$/] });
    await account.setWebhooks({ webhook_url: "https://shop.example.com/hook", name: "Shop" });
    await press(page, "Use as webhook");
    await seeText(page, "Your account may have 1 webhook, which is in use.");
    await seeText(page, "https://shop.example.com/hook");
    await seeText(page, "No deliveries are waiting for it.");
    await browser.inspect(page, "inbox-replace");
    await press(page, "Keep it");
    expect(await account.get("/v1/tenants/webhooks")).toMatchObject([{ name: "Shop" }]);
    await press(page, "Use as webhook");
    await pressRefused(page, "**/v1/tenants/webhooks", "Replace it");
    await press(page, "Replace it");
    await seeText(page, /^\s*In use$/);
    expect(await account.get("/v1/tenants/webhooks")).toMatchObject([{ name: "Inbox" }]);
  });

  test("names the webhooks that it may replace without the secrets in their queries", async () => {
    const { page, account } = await open({ size: "phone" });
    const longName = "W".repeat(200);
    const tier = `${server.url}/operator/tenants/${account.id}/tier`;
    expect((await ask(tier, "PUT", server.operatorToken(), { tier: "business" })).status).toBe(200);
    await account.setWebhooks(
      { webhook_url: "https://shop.example.com/hook?token=s3cret", name: longName },
      { webhook_url: "https://audit.example.com/hook?token=s3cret" },
    );
    await press(page, "Use as webhook");
    const choices = page.getByRole("dialog").getByRole("group", { name: "Webhook to replace" });
    await choices.getByRole("radio").nth(1).waitFor();
    expect(await choices.textContent()).toBe(
      `Webhook to replace${longName}https://shop.example.com/hook?…https://audit.example.com/hook?…`,
    );
    await browser.inspect(page, "inbox-replace-one-of-two");
  });

  test("answers with 503 when told to, and the retry waits", async () => {
    const { page, account } = await open({ size: "phone", isUsed: true });
    const choose503 = () => page.getByLabel("Status").selectOption({ label: "503 Unavailable" });
    await saved(page, choose503);
    await seeText(page, "After a 5xx, the delivery is retried.");
    await saved(page, () => press(page, "Back to 204"));
    await seeText(page, "Any 2xx acknowledges the delivery.");
    await saved(page, choose503);

    await account.ingest({ n: 1 });
    await arrivals(page, 1);
    await page.locator(".inbox-row").filter({ hasText: "503" }).waitFor();
    await browser.inspect(page, "inbox-503");
    await follow(page, "Webhooks");
    await seeText(page, "1 waiting");
    await seeText(page, "HTTP 503 from the webhook");
    expect(await account.get("/v1/events")).toMatchObject({ events: [{ state: "PENDING", attempts: 1 }] });
  });

  test("says what each answer causes: refused for good, too late, none at all", async () => {
    const { page, account } = await open({ size: "desktop", isUsed: true });
    const effect = page.locator(".inbox-effect");
    await saved(page, () => page.getByLabel("Status").selectOption({ label: "404 Not found" }));
    await effect.filter({ hasText: "Failed" }).filter({ hasText: "permanent failure" }).waitFor();
    await saved(page, () => page.getByLabel("Delay").selectOption({ label: "12 s, too late" }));
    await effect.filter({ hasText: "Waiting" }).filter({ hasText: "Postrider waits 10 s" }).waitFor();
    await saved(page, () => page.getByLabel("Delay").selectOption({ label: "None" }));
    await page.getByLabel("Status").selectOption({ label: "Other" });
    await page.getByLabel("Other status").fill("418");
    await saved(page, () => press(page, "Use it"));
    await account.ingest({ n: 1 });
    await page.locator(".inbox-row").filter({ hasText: "418" }).waitFor();

    await saved(page, () => page.getByLabel("Do not respond").check());
    await effect.filter({ hasText: "The inbox does not respond." }).waitFor();
    await account.ingest({ n: 2 });
    await page.locator(".inbox-row").filter({ hasText: "no response" }).waitFor();
    await page.locator(".inbox-row").first().click();
    await seeText(page, "No response in time");
    await browser.inspect(page, "inbox-silent");
  });

  test("goes back to 204 from a status that was typed, and shows that", async () => {
    const { page } = await open({ size: "desktop", isUsed: true });
    const status = page.getByLabel("Status", { exact: true });
    await status.selectOption({ label: "Other" });
    await page.getByLabel("Other status").fill("418");
    await saved(page, () => press(page, "Use it"));
    await saved(page, () => press(page, "Back to 204"));
    await seeText(page, "Any 2xx acknowledges the delivery.");
    expect(await status.inputValue()).toBe("204");
    expect(await page.getByLabel("Other status").count()).toBe(0);
  });

  test("shows an answer that was set elsewhere", async () => {
    const { page, account } = await open({ size: "phone", isUsed: true });
    await account.put("/v1/inbox/answer", { status: 507, delay_ms: 3000 });
    await seeText(page, "The inbox responds after 3 s. After a 5xx, the delivery is retried.");
    expect(await page.getByLabel("Other status").inputValue()).toBe("507");
  });

  test("holds back what is new while somebody reads further down", async () => {
    const { page, account } = await open({ size: "desktop", isUsed: true });
    await account.ingestAll(Array.from({ length: 30 }, (_, n) => ({ n })));
    await arrivals(page, 30);
    const last = page.locator(".inbox-row").last();
    await last.scrollIntoViewIfNeeded();
    const before = await last.boundingBox();
    await account.ingestAll([{ n: 31 }, { n: 32 }]);
    await page.getByRole("button", { name: "2 new" }).waitFor();
    expect(await last.boundingBox()).toEqual(before);
    await browser.inspect(page, "inbox-new");
    await press(page, "2 new");
    await arrivals(page, 32);
    expect(await page.evaluate<number>("scrollY")).toBe(0);
  });

  test("is read by keyboard: j and k move, Escape goes back", async () => {
    const { page, account } = await open({ size: "desktop", isUsed: true });
    const eventIds = await account.ingestAll([{ n: 1 }, { n: 2 }]);
    await arrivals(page, 2);
    const first = await rowOf(page, "Service-Event-Id");
    await page.keyboard.press("j");
    await page.waitForURL(/\?delivery=ibx_/);
    const second = await rowOf(page, "Service-Event-Id");
    expect(new Set([first, second])).toEqual(new Set(eventIds));
    await page.keyboard.press("k");
    await page.getByRole("cell", { name: first, exact: true }).first().waitFor();
    await page.keyboard.press("Escape");
    await page.waitForURL(`${server.url}/inbox`);
  });

  test("is emptied after a question", async () => {
    const { page, account } = await open({ size: "phone", provoked: [/^503: .*\/deliveries$/], isUsed: true });
    await account.ingest({ n: 1 });
    await arrivals(page, 1);
    await press(page, "Empty the inbox");
    await seeText(page, "The outcome of each delivery stays with its event.");
    await pressRefused(page, "**/v1/inbox/deliveries", "Empty it");
    await browser.inspect(page, "inbox-not-emptied");
    await press(page, "Empty it");
    await seeText(page, /^Nothing has arrived yet\.$/);
    await page.goto(`${server.url}/inbox?delivery=ibx_gone`);
    await seeText(page, "This delivery is no longer here");
    await browser.inspect(page, "inbox-gone");
    await follow(page, "Back to the inbox");
    await seeText(page, /^Nothing has arrived yet\.$/);
    expect(await account.get("/v1/inbox")).toMatchObject({ total: 0 });
  });

  test("does not wait for who is signed in, which is asked again when it was not answered", async () => {
    const { page, account } = await open({ size: "desktop", provoked: [/^503: .*\/me$/], isUsed: true });
    await account.ingest({ n: 1 });
    await arrivals(page, 1);
    await refuseOnce(page, "**/v1/tenants/me");
    await page.reload();
    await arrivals(page, 1);
    await seeText(page, "The signature verifies");
    await follow(page, "Webhooks");
    await seeHeading(page, "Verify deliveries");
    // Five seconds after the one that was not answered.
    await seeText(page, `free · ${account.id}`);
  });

  test("opens by its own address, and says so when that is another account's", async () => {
    const { page, account } = await open({ size: "desktop", isUsed: true });
    const { url } = await account.get<{ url: string }>("/v1/inbox");
    await account.ingest({ n: 1 });
    await page.goto(url);
    await arrivals(page, 1);
    await page.locator(".inbox-row").click();
    await page.waitForURL(`${url}?delivery=*`);
    const other = await (await openAccount(server.url)).get<{ url: string }>("/v1/inbox");
    await page.goto(other.url);
    await seeText(page, "The address that you opened is not this account's inbox.");
    await arrivals(page, 1);
  });
});

type Opening = Pick<Look, "size" | "provoked"> & { isUsed?: boolean };

/** A new account, on the page. @param isUsed whether the inbox is its webhook already */
async function open({ size, provoked = [], isUsed = false }: Opening) {
  const account = await openAccount(server.url);
  if (isUsed) await account.setWebhooks({ webhook_url: (await account.get<{ url: string }>("/v1/inbox")).url });
  const page = await browser.page({ size, provoked });
  await account.signIn(page);
  await page.goto(`${server.url}/inbox`);
  await page.getByText("Live", { exact: true }).waitFor();
  await seeText(page, isUsed ? /^\s*In use$/ : "Use as webhook");
  return { page, account };
}

const arrivals = (page: Page, n: number) => page.getByRole("heading", { name: `Deliveries · ${n}` }).waitFor();

/** A header of the delivery that is open. */
const rowOf = async (page: Page, name: string) =>
  (await page.getByRole("row").filter({ hasText: name }).first().locator("td").textContent()) ?? "";

/** Returns when what was chosen is saved: the next delivery is answered by it. */
async function saved(page: Page, choose: () => Promise<unknown>): Promise<void> {
  const answered = page.waitForResponse(`${server.url}/v1/inbox/answer`);
  await choose();
  await (await answered).finished();
}
