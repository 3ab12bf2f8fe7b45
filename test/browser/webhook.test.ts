import { describe, expect, test } from "bun:test";
import type { Page } from "playwright-core";
import { type Look, noBrowser, openBrowser } from "./browser.ts";
import { focused, row, see } from "./event-list.ts";
import { startExecutable } from "./executable.ts";
import { startObedientReceiver } from "./obedient-receiver.ts";
import { type Account, openAccount } from "./signed-in.ts";
import { ask, follow, press, seeHeading, seeText } from "./visitor.ts";

const server = await startExecutable({ POSTRIDER_RETRY_SCHEDULE: "1h" });
const browser = openBrowser(server.url);
const receiver = startObedientReceiver();
const hook = `${receiver.url}/orders?token=s3cret`;

const refused = /^400: .*\/v1\/tenants\/webhooks(\/wh_\w+\/test)?$/;

describe.skipIf(noBrowser !== null)("the page of a webhook", () => {
  test.each(["desktop", "phone"] as const)("says how it does and why it fails, on a %s", async (size) => {
    const { account, page } = await open({ size });
    await seeText(page, "Nothing has been sent to it yet.");
    await account.ingestAll([
      ...[{ type: "order.paid" }, { type: "order.paid", answer: 404 }, { type: "refund", answer: 503 }],
      { type: "order.paid", answer: 404 },
    ]);
    await see(page.getByRole("region", { name: "Shop" }).getByText("HTTP 404"));
    await see(row(page, "order.paid").getByText(/Delivered · .+ms · 1 try/), row(page, /HTTP 503 · .+ms · 1 try/));
    const figures = page.locator(".webhook-figures");
    await see(figures.getByText("Delivered1"), figures.getByText("Waiting1"), figures.getByText("Failed2"));
    expect(await page.getByText("s3cret").count()).toBe(0);
    await browser.inspect(page, "webhook");

    await press(page, /^Replay 2 with HTTP 404$/);
    await see(page.getByText("All failed"));
    // Of all that it was sent: one got through, two failed twice, and one will be sent again.
    await see(page.getByRole("img", { name: /, 1 deliveries succeeded and 4 failed\./ }));
    const outcomes = page.getByRole("region", { name: "Deliveries per 15 minutes, stacked by outcome" });
    const legend = await outcomes.getByRole("listitem").allTextContents();
    expect(legend).toEqual(["Delivered 1", "Failed 4", "To be retried 1"]);
    await see(page.getByRole("img", { name: /half of the attempts with a response took up to \d/ }));
    const boxes = await Promise.all([0, 1].map((nth) => page.locator(".chart-plot .u-over").nth(nth).boundingBox()));
    expect(boxes[0]?.width).toBe(boxes[1]?.width);
    await browser.inspect(page, "webhook-over-time");
    await outcomes.getByText("Figures as a table").click();
    await outcomes.getByRole("row").nth(1).getByRole("link").click();
    await page.waitForURL(/\/events\?webhook=wh_\w+&from=.*&to=/);
    await see(page.getByText("1–4 of 4 deliveries"));
    await page.goBack();
    await figures.getByRole("link", { name: "Failed" }).click();
    await page.waitForURL(/\/events\?state=failed&webhook=wh_\w+&from=/);
    await see(page.getByText("1–2 of 2 deliveries"));
    await page.goBack();
    await row(page, "refund").click();
    await seeText(page, /^refund · Accepted /);
    await page.keyboard.press("Escape");
    await page.waitForURL(/\/webhooks\/wh_\w+$/);
    await page.getByRole("link", { name: "1 h", exact: true }).click();
    await page.waitForURL(/\/webhooks\/wh_\w+\?range=1h$/);
    await see(figures.getByText("Failed2"));
    await seeHeading(page, "Deliveries per minute, stacked by outcome");
  });

  test.each(["desktop", "phone"] as const)(
    "saves its settings, and shows what is wrong beside its field, on a %s",
    async (size) => {
      const { account, page, id } = await open({ size, provoked: [refused] });
      const save = page.getByRole("button", { name: "Save settings" });
      expect(await save.isDisabled()).toBe(true);
      await page.getByLabel("Name").fill("Books");
      await page.getByLabel("Event types").fill("order.*\nre fund!");
      await save.click();
      await seeText(page, /^“fund!” must be words of letters/);
      await browser.inspect(page, "webhook-settings-wrong");
      await page.getByLabel("Event types").fill("order.*\nrefund");
      await page.getByLabel("Rate limit per second").fill("5000");
      await page.getByLabel("Concurrency").fill("2");
      await save.click();
      await seeText(page, "This must be at most 1000.");
      await page.getByLabel("Rate limit per second").fill("20");
      await save.click();
      await seeText(page, "Settings saved.");
      await seeHeading(page, "Books");
      expect(await settingsOf(account)).toMatchObject([
        ...[{ id, name: "Books", event_types: ["order.*", "refund"], rate_limit: 20, max_concurrency: 2 }],
      ]);
      await page.getByLabel("Event types").fill("");
      await page.getByLabel("Rate limit per second").fill("");
      await save.click();
      await page.locator("form.webhook-settings button[type=submit]:disabled").waitFor();
      expect(await settingsOf(account)).toMatchObject([{ event_types: null, rate_limit: null, max_concurrency: 2 }]);
    },
  );

  test.each(["desktop", "phone"] as const)(
    "sends headers of one's own, and shows no value again, on a %s",
    async (size) => {
      const { account, page } = await open({ size, provoked: [refused] });
      const save = page.getByRole("button", { name: "Save settings" });
      await page.getByLabel("Headers").fill("Authorization: Bearer s3cret-of-shop\nX-Shop: 1\nx-shop: 2");
      await seeText(page, "“x-shop” is listed twice.");
      await page.getByLabel("Headers").fill("Authorization: Bearer s3cret-of-shop\nHost: shop.example");
      await save.click();
      await seeText(page, /^This has the name "Host", which the delivery itself sets/);
      await page.getByLabel("Headers").fill("Authorization: Bearer s3cret-of-shop\nX-Shop: 1");
      await page.getByLabel("Keep the order of events with the same key").check();
      await save.click();
      await seeText(page, "Settings saved.");
      expect(await page.getByLabel("Headers").inputValue()).toBe("Authorization: ••••shop\nX-Shop: ••••");
      await browser.inspect(page, "webhook-headers");
      await page.getByLabel("Headers").fill("Authorization: ••••shop");
      await save.click();
      await page.locator("form.webhook-settings button[type=submit]:disabled").waitFor();
      const headers = { Authorization: "••••shop" };
      expect(await settingsOf(account)).toMatchObject([{ headers, ordered: true }]);
      const id = await account.ingest({ type: "order.paid" });
      const sent = await receiver.waitFor((request) => request.headers.get("service-event-id") === id);
      expect([sent.headers.get("authorization"), sent.headers.get("x-shop")]).toEqual(["Bearer s3cret-of-shop", null]);
    },
  );

  test("keeps what is not saved while one looks elsewhere, and saves nothing else of the list", async () => {
    const { account, page } = await open({ tier: "enterprise" });
    const [books, others] = [{ webhook_url: `${receiver.url}/books`, name: "Books" }, { event_types: ["order.*"] }];
    const unsaved = page.getByText("You have unsaved changes to a webhook's settings.");
    await page.getByLabel("Rate limit per second").fill("7");
    // Meanwhile somebody pauses it, chooses its types, and registers another one.
    await account.put("/v1/tenants/webhooks", [{ webhook_url: hook, name: "Shop", paused: true, ...others }, books]);
    await follow(page, "Webhooks");
    await see(unsaved);
    await follow(page, "Books");
    await page.getByLabel("Name").fill("My books");
    await follow(page, "Back to them");
    await seeHeading(page, "Shop");
    expect(await page.getByLabel("Rate limit per second").inputValue()).toBe("7");
    expect(await page.getByLabel("Event types").inputValue()).toBe("order.*");

    const { promise: isTyped, resolve: typed } = Promise.withResolvers<void>();
    await page.route("**/v1/tenants/webhooks", async (route) => {
      if (route.request().method() === "PUT") await isTyped;
      await route.continue();
    });
    await press(page, "Save settings");
    await page.getByLabel("Name").fill("Later");
    typed();
    await seeText(page, "Settings saved.");
    expect(await settingsOf(account)).toMatchObject([{ name: "Shop", paused: true, rate_limit: 7, ...others }, {}]);
    expect(await page.getByLabel("Name").inputValue()).toBe("Later");
    await press(page, "Discard");
    expect(await page.getByLabel("Name").inputValue()).toBe("Shop");
    await follow(page, "Back to them");
    await seeHeading(page, "Books");
    expect(await page.getByLabel("Name").inputValue()).toBe("My books");
    await press(page, "Discard");
    await unsaved.waitFor({ state: "detached" });
  });

  test.each(["desktop", "phone"] as const)("pauses and resumes it, and tests it meanwhile, on a %s", async (size) => {
    const { account, page } = await open({ size, provoked: [refused] });
    await press(page, "Pause");
    await seeText(page, "Its deliveries wait, and go out oldest first when you resume it.");
    await see(focused(page.getByRole("button", { name: "Resume" })));
    await account.ingest({ type: "order.paid" });
    await see(page.locator(".webhook-figures").getByText("Waiting1"));
    await press(page, "Send a test event");
    await press(page, "Send");
    await seeText(page, "Acknowledged");
    await page.getByRole("textbox", { name: "Payload" }).fill('{ "type": "refund", "n": 1.0 ');
    await seeText(page, /^Not valid JSON: /);
    await see(page.locator("form button[type=submit]:disabled", { hasText: "Send" }));
    await page.getByRole("textbox", { name: "Payload" }).fill('{ "type": "refund", "n": 1.0 }');
    await page.getByLabel("Event type", { exact: true }).fill("postrider.mine");
    await press(page, "Send");
    await seeText(page, /^This must not begin with "postrider\."/);
    await page.getByLabel("Event type", { exact: true }).fill("");
    await account.put("/v1/tenants/webhooks", [{ webhook_url: hook, name: "Shop", event_types: ["order.*"] }]);
    await press(page, "Send");
    await seeText(page, "Events of the type refund do not go to this webhook:");
    await receiver.waitFor((request) => request.body.toString().endsWith('"payload":{ "type": "refund", "n": 1.0 }}'));
    await browser.inspect(page, "webhook-paused");
    await press(page, "Resume");
    await see(focused(page.getByRole("button", { name: "Pause" })));
    await see(row(page, /Delivered · .+ms · 1 try/));
    expect(await settingsOf(account)).toMatchObject([{ state: "active" }]);
  });

  test.each(["desktop", "phone"] as const)("says why it is disabled, and enables it, on a %s", async (size) => {
    const { account, page } = await open({ size });
    await account.ingestAll([{ answer: 410 }, { answer: 410 }, { answer: 410 }]);
    await seeText(page, /Shop was disabled .*, because it answered several deliveries with 410/);
    await see(page.getByText("Disabled", { exact: true }));
    await account.ingest({ type: "order.paid" });
    await see(row(page, "order.paid").getByText("Webhook disabled"));
    await browser.inspect(page, "webhook-disabled");
    await page.goto(`${server.url}/webhooks`);
    await see(page.getByText("Disabled", { exact: true }));
    await page.goBack();
    await press(page, "Enable Shop");
    await seeText(page, "Shop is enabled. You can replay what failed while it was disabled.");
    await see(page.getByRole("button", { name: "Pause" }));
    expect(await settingsOf(account)).toMatchObject([{ state: "active", disabled_at: null }]);
    await account.ingest({ type: "refund" });
    await see(row(page, "refund").getByText(/Delivered · .+ms · 1 try/));
  });

  test("shows the replays that go to it, and no others", async () => {
    const { account, page } = await open({ tier: "enterprise" });
    const books = `${receiver.url}/books`;
    await account.setWebhooks({ webhook_url: hook, name: "Shop" }, { webhook_url: books, name: "Books" });
    receiver.answerAlways(503);
    await account.ingest({ type: "order.paid" });
    for (const [replayGroupId, webhook] of [["to-books", books], ["to-shop", hook], ["to-all"]]) {
      await account.post("/v1/events/replays/all", { replayGroupId, webhook });
    }
    const replays = page.getByRole("region", { name: "Replays" });
    await see(replays.getByText("to-all"), replays.getByText("to-shop"), replays.getByText(/^Events: Shop · /));
    expect(await replays.locator(".label").allTextContents()).toEqual(["to-all", "to-shop"]);
    receiver.answerAlways(null);
  });

  test("is reached from the list, and says so when there is none", async () => {
    const { account, page } = await open({});
    await follow(page, "Webhooks");
    await follow(page, "Shop");
    await seeHeading(page, "Shop");
    await account.setWebhooks();
    await seeText(page, "This webhook is not registered, or no longer is.");
    await browser.inspect(page, "webhook-gone");
    await follow(page, "See its events");
    await page.waitForURL(/\/events\?webhook=wh_/);
  });
});

async function open({
  tier,
  ...look
}: Partial<Look> & { tier?: string }): Promise<{ account: Account; page: Page; id: string }> {
  const account = await openAccount(server.url);
  if (tier) await ask(`${server.url}/operator/tenants/${account.id}/tier`, "PUT", server.operatorToken(), { tier });
  await account.setWebhooks({ webhook_url: hook, name: "Shop" });
  const [webhook] = await account.get<{ id: string }[]>("/v1/tenants/webhooks");
  const id = webhook?.id ?? "";
  const page = await browser.page({ size: "desktop", ...look, provoked: look.provoked ?? [] });
  await account.signIn(page);
  await page.goto(`${server.url}/webhooks/${id}`);
  await seeHeading(page, "Shop");
  await page.getByText("Live", { exact: true }).waitFor();
  return { account, page, id };
}

const settingsOf = (account: Account) => account.get<object[]>("/v1/tenants/webhooks?expand=true");
