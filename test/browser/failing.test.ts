import { afterAll, describe, expect, test } from "bun:test";
import type { Locator, Page } from "playwright-core";
import { until } from "../support/api-server.ts";
import { startReceiver } from "../support/receiver.ts";
import { noBrowser, openBrowser } from "./browser.ts";
import { startExecutable } from "./executable.ts";
import { type Account, openAccount } from "./signed-in.ts";
import { ask, press, seePath, seeText } from "./visitor.ts";

const server = await startExecutable();
const browser = openBrowser(server.url);

/** What each path answers, by what the payload asks for; 204 unless it is told otherwise. */
type Answers = (payload: { event_type?: string }) => Response;
const answers = new Map<string, Answers>();
const receiver = startReceiver({
  answer: (request) =>
    answers.get(request.path)?.((request.json() as { payload: object }).payload) ?? new Response(null, { status: 204 }),
});
afterAll(() => receiver.stop());

const sizes = ["desktop", "phone"] as const;

describe.skipIf(noBrowser !== null)("the overview while something fails", () => {
  test.each(sizes)("opens on what fails and why, and counts what its lists count, on a %s", async (size) => {
    const { page, account, path } = await openShop(size);
    answers.set(path, failing);
    await account.ingestAll([...orders(6), ...refunds(2), { event_type: "payment.failed" }]);
    await seeText(page, /^1 of 2 webhooks delivers\. Shop has failed since \d\d:\d\d\.$/);
    const shop = page.getByRole("region", { name: "Shop" });
    await shop.getByText(/^8 of 9 failed, down since \d\d:\d\d, 1 waits for a retry$/).waitFor();
    const causes = shop.getByRole("listitem");
    expect(await causes.count()).toBe(2);
    await causes.nth(0).getByText("no such route").waitFor();
    await causes.nth(0).getByText("order.paid 6 · refund 2").waitFor();
    await causes.nth(0).getByText("given up").waitFor();
    await causes.nth(1).getByText("database down").waitFor();
    await causes.nth(1).getByText("being retried").waitFor();
    const well = page.getByRole("list", { name: "Webhooks without a failure" });
    await well
      .getByRole("listitem")
      .filter({ hasText: /^Audit\s*9 of 9 · p95 [\d.]+ m?s$/ })
      .waitFor();
    await page.mouse.move(0, 0);
    await browser.inspect(page, "overview-failing");

    for (const [link, n] of [
      [causes.nth(0).getByRole("link", { name: "See 8 events with HTTP 404" }), 8],
      [causes.nth(1).getByRole("link", { name: "See 1 event with HTTP 500" }), 1],
      [shop.getByRole("link", { name: "9", exact: true }), 9],
      [well.getByRole("link").nth(1), 9],
      [well.getByRole("link").nth(2), 9],
      [page.locator(".figure").getByRole("link", { name: "Failed", exact: true }), 8],
      [page.locator(".figure").getByRole("link", { name: "Delivered", exact: true }), 9],
    ] as const) {
      expect(await countOf(account, link)).toBe(n);
    }
    await causes.nth(0).getByRole("link", { name: "See 8 events with HTTP 404" }).click();
    await seePath(page, "/events");
    expect(new URL(page.url()).searchParams.get("code")).toBe("http_status");
  });

  test.each(sizes)("replays exactly what failed so, and shows how that goes, on a %s", async (size) => {
    const { page, account, path } = await openShop(size);
    answers.set(path, failing);
    await account.ingestAll([...orders(3), { event_type: "payment.failed" }]);
    const shop = page.getByRole("region", { name: "Shop" });
    await shop.getByText("no such route").waitFor();
    answers.set(path, ({ event_type }) =>
      event_type === "order.paid" ? new Response("forbidden", { status: 403 }) : new Response(null, { status: 204 }),
    );
    await press(shop, "Replay 3 with HTTP 404");
    await seeText(page, "Replaying 3 failed events to Shop.");
    expect(await page.evaluate<boolean>(isUncoveredAtItsEnd)).toBe(true);
    const replays = shop.locator(".replay");
    await replays.getByText("All failed").waitFor();
    await replays.getByRole("img", { name: "Of the deliveries of this replay: 3 failed" }).waitFor();
    await replays.getByText(/^Failed events: Shop · HTTP 404 · Since /).waitFor();
    expect(await countOf(account, replays.getByRole("link", { name: "See its events" }))).toBe(3);
    expect(await countOf(account, replays.getByRole("link", { name: "See what failed" }))).toBe(3);
    await shop.getByText("HTTP 403").waitFor();
    await shop.getByText("none left").waitFor();
    // The button is gone, and the focus is where it was.
    await shop.locator("li.cause:focus", { hasText: "none left" }).waitFor();
    // Another type gets through, and this one still does not.
    await seeText(page, /^1 of 2 webhooks delivers everything\. Shop fails for some events\. 3 deliveries failed/);
    await shop.getByText("3 of 4 failed").waitFor();
    await shop.locator("li.cause", { hasText: "HTTP 403" }).getByText("none of these delivered since").waitFor();
    await browser.inspect(page, "overview-replayed");

    answers.delete(path);
    await press(shop, "Replay 3 with HTTP 403");
    await replays.getByText("Completed").waitFor();
    // The card stays where it is, and says so; nothing below it moves, but for lines that a phone breaks elsewhere.
    const { y: below } = (await page.locator(".figures").boundingBox()) ?? {};
    await shop.getByText("No failures left").waitFor();
    const moved = ((await page.locator(".figures").boundingBox())?.y ?? Number.NaN) - (below ?? 0);
    expect(Math.abs(moved)).toBeLessThanOrEqual(size === "desktop" ? 0 : 36);
    await seeText(page, "Both webhooks deliver.");
    await browser.inspect(page, "overview-calm");
    const { replays: made } = await account.get<{ replays: { selected: number; filter: object }[] }>(
      "/v1/events/replays",
    );
    expect(made.map(({ selected }) => selected)).toEqual([3, 3]);
    expect(made[0]?.filter).toMatchObject({ code: "http_status", status: 403, webhook: expect.stringMatching(/^wh_/) });
  });

  test("counts what fails in more ways than are listed, and no webhook among those without a failure", async () => {
    const { page, account, path } = await openShop("desktop");
    const ways = Array.from({ length: 101 }, (_, n) => `no ${String.fromCharCode(97 + (n >> 4), 97 + (n % 16))}y`);
    let nth = 0;
    answers.set(path, () => new Response(ways[nth++ % ways.length], { status: 400 }));
    // Refused once by the other webhook as well: the smallest of the groups.
    answers.set("/audit", ({ event_type }) => new Response("no", { status: event_type === "refund" ? 400 : 204 }));
    await account.ingestAll([...refunds(1), ...orders(201)]);
    const shop = page.getByRole("region", { name: "Shop" });
    await shop.getByText(/^202 of 202 failed, down since /).waitFor();
    await shop.getByText("and 99 more answers").waitFor();
    expect(await countOf(account, shop.getByRole("link", { name: "See 202 events with HTTP 400" }))).toBe(202);
    await page.getByRole("region", { name: "Audit" }).getByText("1 of 202 failed").waitFor();
    expect(await page.getByRole("list", { name: "Webhooks without a failure" }).count()).toBe(0);
    answers.delete("/audit");
  });

  test("says of no webhook that it has not failed while the webhook of some failures is not known", async () => {
    const { page, account, path, webhooks } = await openShop("desktop");
    answers.set(path, failing);
    // As if the account had a thousand groups already.
    await page.route(/\/v1\/failures/, async (route) => {
      const response = await route.fetch();
      const report = (await response.json()) as { groups: readonly { failed: number }[] };
      const failed = report.groups.reduce((sum, group) => sum + group.failed, 0);
      await route.fulfill({ response, json: { ...report, groups: [], others: { waiting: 0, failed } } });
    });
    await account.ingestAll(orders(2));
    await seeText(page, /^2 more failed in many different ways\./);
    const well = page.getByRole("list", { name: "Webhooks without a failure" });
    await well.getByText("Audit").waitFor();
    expect(await well.getByRole("listitem").count()).toBe(1);
    // What waits for a paused webhook has not failed.
    const [shop, audit] = webhooks;
    await account.put("/v1/tenants/webhooks", [shop, { ...audit, paused: true }]);
    await account.ingestAll(orders(1));
    await well
      .getByRole("listitem")
      .filter({ hasText: /^Audit\s*paused\s*2 of 3 · / })
      .waitFor();
    expect(await well.getByRole("listitem").count()).toBe(1);
  });

  test("keeps long names and names from right to left from pushing figures about, on a phone", async () => {
    const { page, account, path, webhooks } = await openShop("phone");
    answers.set(path, failing);
    await account.put("/v1/tenants/webhooks", [webhooks[0], { ...webhooks[1], name: "W".repeat(200) }]);
    await account.ingestAll([{ event_type: "طلب.جديد" }, { event_type: "refund" }]);
    // In an isolate of its own, so that its count stays on its own side.
    await page
      .getByRole("region", { name: "Shop" })
      .getByText(/\u2068طلب\.جديد\u2069 1/)
      .waitFor();
    const line = page.getByRole("list", { name: "Webhooks without a failure" }).getByRole("listitem");
    const p95 = line.getByText(/· p95 [\d.]+ m?s$/);
    await p95.waitFor();
    expect((await p95.boundingBox())?.height).toBeLessThan(24);
    expect((await line.getByRole("link").first().boundingBox())?.height).toBeLessThan(24);
    await browser.inspect(page, "overview-long-name");
  });

  test("shows names without a place to break on a phone as wide as it is", async () => {
    const { page, account, path, webhooks } = await openShop("phone");
    const name = "W".repeat(200);
    await account.setWebhooks(...webhooks.map((webhook) => ({ ...webhook, name })));
    answers.set(path, () => new Response("gone", { status: 410 }));
    await account.ingestAll(orders(3));
    const disabled = page.getByText(`${name} was disabled`);
    await disabled.waitFor();
    await seeText(page, `1 of 2 webhooks delivers. ${name} is disabled.`);
    await browser.inspect(page, "overview-long-names");
    await page.getByRole("region", { name }).getByRole("link", { name }).click();
    await page.waitForURL(/\/webhooks\/./);
    await disabled.waitFor();
    await browser.inspect(page, "webhook-long-name");
  });

  test("asks without event types where a webhook's failures are only summed up", async () => {
    const { page, account, path } = await openShop("desktop");
    answers.set(path, failing);
    // As if a hundred groups were larger.
    await page.route(/\/v1\/failures/, async (route) => {
      const response = await route.fetch();
      const report = (await response.json()) as { groups: readonly { answer: string; eventTypes: unknown }[] };
      const unlisted = report.groups.map(({ answer, eventTypes, ...sum }) => ({ ...sum, groups: 1 }));
      await route.fulfill({ response, json: { ...report, groups: [], unlisted } });
    });
    await account.ingestAll(orders(101));
    await press(page.getByRole("region", { name: "Shop" }), "Replay 101 with HTTP 404");
    const dialog = page.getByRole("dialog", { name: "Replay 101 failed events?" });
    expect(await dialog.locator(".facts").textContent()).toMatch(/^WebhookShopFailed withHTTP 404Acceptedsince /);
  });

  test("shows what would turn an answer round, also in the question before a replay", async () => {
    const { page, account, path } = await openShop("desktop");
    answers.set(path, () => new Response("not found: \u202egpj.exe", { status: 404 }));
    await account.ingestAll(orders(101));
    const shop = page.getByRole("region", { name: "Shop" });
    const shown = "not found: ⟨U+202E⟩gpj.exe";
    expect(await shop.locator("q").getAttribute("title")).toBe(shown);
    await press(shop, "Replay 101 with HTTP 404");
    await page.getByRole("dialog").getByText(`HTTP 404, ${shown}`).waitFor();
  });

  test("asks before it replays more than a hundred events", async () => {
    const { page, account, path } = await openShop("desktop");
    answers.set(path, failing);
    await account.ingestAll(orders(101));
    const shop = page.getByRole("region", { name: "Shop" });
    await press(shop, "Replay 101 with HTTP 404");
    const dialog = page.getByRole("dialog", { name: "Replay 101 failed events?" });
    await dialog.getByText("They are sent again to Shop and nowhere else.").waitFor();
    // In the first hour of a day it was yesterday.
    expect(await dialog.locator(".facts").textContent()).toMatch(
      /^WebhookShopFailed withHTTP 404, no such routeEvent typesorder\.paid 101Acceptedsince (\d+ \w{3} )?\d\d:00$/,
    );
    await browser.inspect(page, "overview-replay-many");
    await press(dialog, "Not now");
    expect(await account.get("/v1/events/replays")).toMatchObject({ total: 0 });
    await press(shop, "Replay 101 with HTTP 404");
    answers.delete(path);
    await press(dialog, "Replay 101 failed events");
    await shop.getByText("101 delivered").waitFor();
    await seeText(page, "Both webhooks deliver.");
  });

  test("knows which of a dozen webhooks fail from the first failure on, and leads to all of them", async () => {
    const { page, account, path } = await openShop("desktop");
    const limits = `${server.url}/operator/tenants/${account.id}/limits`;
    expect((await ask(limits, "PUT", server.operatorToken(), { webhooks: 12 })).status).toBe(200);
    const names = Array.from({ length: 12 }, (_, n) => `Hook ${n + 1}`);
    await account.setWebhooks(...names.map((name, n) => ({ webhook_url: `${receiver.url}${path}-${n}`, name })));
    for (let n = 0; n < 8; n += 1)
      answers.set(`${path}-${n}`, () => new Response("down", { status: n < 7 ? 503 : 404 }));
    await account.ingestAll(orders(2));
    await seeText(page, /^4 of 12 webhooks deliver\. .* 5 more fail as well\.$/);
    // First the one whose failures can be replayed.
    await page.getByRole("region", { name: "Hook 8" }).and(page.locator("section.failing:first-child")).waitFor();
    await seeText(page, /^2 more webhooks fail\. /);
    await page.getByRole("link", { name: "See all webhooks" }).click();
    await seePath(page, "/webhooks");
    await page
      .getByText(/^Failing since /)
      .nth(7)
      .waitFor();
  });

  test("replays what one webhook has given up, and not what another one retries, without a question", async () => {
    const { page, account, path } = await openShop("desktop");
    await account.setWebhooks(
      { webhook_url: receiver.url + path, name: "Shop" },
      { webhook_url: `${receiver.url}${path}-books`, name: "Books" },
    );
    answers.set(path, failing);
    answers.set(`${path}-books`, () => new Response("down", { status: 500 }));
    await account.ingestAll(orders(2));
    await until(
      () => account.get<{ total: number }>("/v1/events/state/FAILED?size=1"),
      ({ total }) => total === 2,
    );
    await page.goto(`${server.url}/replays`);
    await press(page, "Replay 2 failed events …");
    const dialog = page.getByRole("dialog", { name: "Replay 2 failed events?" });
    await dialog.getByText(/, including those where they wait for a retry\.$/).waitFor();
    await press(dialog, "Not now");

    await page.goto(`${server.url}/events?state=failed`);
    answers.delete(path);
    await press(page, "Replay these 2");
    const progress = page.getByRole("region", { name: "Replay" });
    await progress.getByText("2 delivered").waitFor();
    await progress.getByText(/^Failed events: Shop · /).waitFor();
    expect(await account.get("/v1/events/replays")).toMatchObject({ total: 1, replays: [{ queued: 2 }] });
  });

  test("says that a webhook delivers again, and keeps what it lost at hand", async () => {
    const { page, account, path } = await openShop("desktop");
    answers.set(path, failing);
    await account.ingestAll(orders(2));
    await seeText(page, /^1 of 2 webhooks delivers\. Shop has failed since/);
    answers.delete(path);
    await account.ingest({ event_type: "order.paid" });
    await seeText(page, "Both webhooks deliver. 2 deliveries failed and can be replayed.");
    await page.getByRole("region", { name: "Shop" }).getByText("2 of 3 failed, and it delivers again").waitFor();
    await page.getByRole("region", { name: "Shop" }).getByText("delivered again since").waitFor();
    await browser.inspect(page, "overview-recovered");
  });

  test.each(sizes)(
    "says which webhooks are paused or disabled, and enables one with a click, on a %s",
    async (size) => {
      const { page, account, path, webhooks } = await openShop(size);
      answers.set(path, () => new Response("gone", { status: 410 }));
      await account.ingestAll(orders(3));
      await seeText(page, "1 of 2 webhooks delivers. Shop is disabled.");
      await account.put("/v1/tenants/webhooks", [webhooks[0], { ...webhooks[1], paused: true }]);
      await seeText(page, "Nothing is delivered. Shop is disabled. Audit is paused.");
      await page.getByRole("list", { name: "Webhooks without a failure" }).getByText("paused").waitFor();
      const bar = page.getByRole("status").filter({ hasText: "because it answered several deliveries with 410" });
      await bar.getByText("Nothing is sent to it, and what comes for it fails.").waitFor();
      const shop = page.getByRole("region", { name: "Shop" });
      expect(await shop.getByRole("button").count()).toBe(0);
      await browser.inspect(page, "overview-disabled");

      const [registered] = await account.get<{ id: string }[]>("/v1/tenants/webhooks");
      await page.goto(`${server.url}/events?state=failed&webhook=${registered?.id}`);
      await bar.getByRole("button", { name: "Enable Shop" }).waitFor();
      expect(await page.getByRole("button", { name: /^Replay/ }).count()).toBe(0);
      await page.locator("a.event-row").first().focus();
      await page.keyboard.press("r");
      await seeText(page, "Shop is disabled. Enable it, then replay.");
      expect(await account.get("/v1/events/replays")).toMatchObject({ total: 0 });
      await page.goto(server.url);

      await press(bar, "Enable Shop");
      await seeText(page, "Shop is enabled. You can replay what failed while it was disabled.");
      await bar.waitFor({ state: "detached" });
      await press(shop, /^Replay 3 /);
      await seePath(page, "/");
      await shop.getByRole("link", { name: "Shop", exact: true }).click();
      await seePath(page, `/webhooks/${registered?.id}`);
    },
  );

  test.each(sizes)("replays an event to the webhook that has not acknowledged it, and asks, on a %s", async (size) => {
    const { page, account, path, webhooks } = await openShop(size);
    answers.set(path, failing);
    await account.ingestAll(orders(1));
    const { events } = await account.get<{ events: { eventId: string }[] }>("/v1/events");
    const eventId = events[0]?.eventId ?? "";
    await page.goto(`${server.url}/events/${eventId}`);
    await seeText(page, /^order\.paid · Accepted /);
    await page.getByRole("heading", { name: `Shop ${webhooks[0]?.webhook_url}` }).waitFor();
    await page.getByText("Failed", { exact: true }).waitFor();
    const received = async (webhook: string) =>
      (await account.get<{ targetWebhook: string }[]>(`/v1/events/${eventId}/attempts`)).filter(
        ({ targetWebhook }) => targetWebhook === webhook,
      ).length;

    answers.delete(path);
    await press(page, "Replay");
    const dialog = page.getByRole("dialog", { name: "Replay this event?" });
    await dialog.getByText("Audit acknowledged it already, and would get it again.").waitFor();
    await browser.inspect(page, "event-replay-again");
    await press(dialog, "Not now");
    await page.keyboard.press("r");
    await press(dialog, "Replay to Shop only");
    await dialog.waitFor({ state: "detached" });
    await page.getByText("Failed", { exact: true }).waitFor({ state: "detached" });
    // It is pending before it is delivered.
    const [shop = "", audit = ""] = webhooks.map(({ webhook_url }) => webhook_url);
    await until(
      () => received(shop),
      (n) => n === 2,
    );
    expect(await received(audit)).toBe(1);

    await press(page, "Replay");
    await dialog.getByText("Shop and Audit acknowledged it already, and would get it again.").waitFor();
    await press(dialog, "Replay to Shop and Audit");
    await dialog.waitFor({ state: "detached" });
    await page
      .locator("summary", { hasText: /^Replay dashboard-/ })
      .nth(1)
      .waitFor();

    // A webhook that is removed meanwhile gets nothing, so it is not named.
    await account.setWebhooks({ webhook_url: shop, name: "Shop" });
    await press(page, "Replay");
    await dialog.getByText("Shop acknowledged it already, and would get it again.").waitFor();
    expect(await dialog.getByRole("button").allTextContents()).toEqual(["Not now", "Replay to Shop"]);
  });

  test("asks with the names of webhooks in full on a phone, however long", async () => {
    const { page, account, path, webhooks } = await openShop("phone");
    const name = "ProductionOrdersOfTheEuropeanUnion".repeat(3);
    await account.setWebhooks(...webhooks.map((webhook) => ({ ...webhook, name })));
    answers.set(path, failing);
    await account.ingestAll(orders(1));
    await page.getByRole("link", { name: "See 1 event with HTTP 404" }).click();
    await page.locator("a.event-row").click();
    await press(page, "Replay");
    await page.getByRole("dialog").getByRole("button", { name: /only$/ }).waitFor();
    expect(await page.evaluate<string[]>(outsideOfDialog)).toEqual([]);
    await browser.inspect(page, "event-replay-long-names");
  });

  test("copies an event as curl for the webhook that is meant, and names it", async () => {
    const { account, path } = await openShop("desktop");
    answers.set(path, failing);
    await account.ingestAll(orders(1));
    const { events } = await until(
      () => account.get<{ events: { eventId: string }[] }>("/v1/events/state/FAILED"),
      ({ events }) => events.length === 1,
    );
    const page = await browser.page({ size: "desktop", permissions: ["clipboard-read", "clipboard-write"] });
    await account.signIn(page);
    const copied = () => page.evaluate<string>("navigator.clipboard.readText()");
    await page.goto(`${server.url}/events/${events[0]?.eventId}`);
    await page.getByText("Failed", { exact: true }).waitFor();
    await page.keyboard.press("c");
    await seeText(page, "Copied as curl for Shop.");
    expect(await copied()).toContain(`${path}'`);
    await press(page, "Copy as curl for Shop");

    await page.goto(`${server.url}/events?state=delivered`);
    await page.locator("a.event-row").click();
    await page.getByText("Failed", { exact: true }).waitFor();
    await page.keyboard.press("c");
    await seeText(page, "Copied as curl for Audit.");
    expect(await copied()).toContain("/audit'");
  });

  test("keeps what somebody points at", async () => {
    const { page, account, path } = await openShop("desktop");
    answers.set(path, failing);
    await account.ingestAll(orders(1));
    const causes = page.getByRole("region", { name: "Shop" }).getByRole("listitem");
    await causes.first().hover();
    const read = page.waitForResponse(
      async (answer) => answer.url().includes("/v1/failures") && (await answer.text()).includes("database down"),
    );
    await account.ingestAll(Array.from({ length: 3 }, () => ({ event_type: "payment.failed" })));
    await read;
    await seeText(page, /^4/);
    expect(await causes.count()).toBe(1);
    await page.mouse.move(0, 0);
    await causes.nth(1).waitFor();
  });
});

/** Of the page, beneath what was just said. */
const isUncoveredAtItsEnd = `(() => {
  scrollTo(0, document.body.scrollHeight);
  const { bottom } = document.querySelector(".charts").getBoundingClientRect();
  const { top } = document.querySelector(".said").getBoundingClientRect();
  scrollTo(0, 0);
  return bottom <= top;
})()`;

/** What a dialog hides at its left or right. */
const outsideOfDialog = `(() => {
  const dialog = document.querySelector("dialog").getBoundingClientRect();
  const isOutside = ({ left, right }) => left < dialog.left || right > dialog.right;
  return [...document.querySelectorAll("dialog :is(p, button)")]
    .filter((one) => isOutside(one.getBoundingClientRect()) || one.scrollWidth > one.clientWidth)
    .map((one) => one.textContent);
})()`;

const failing: Answers = ({ event_type }) =>
  event_type === "payment.failed"
    ? new Response("database down", { status: 500 })
    : new Response("no such route", { status: 404 });

const orders = (n: number) => Array.from({ length: n }, (_, i) => ({ event_type: "order.paid", n: i }));
const refunds = (n: number) => Array.from({ length: n }, (_, i) => ({ event_type: "refund", n: i }));

let opened = 0;

/** An account with two webhooks, of which the first is about to fail, on its overview. */
async function openShop(size: (typeof sizes)[number]) {
  opened += 1;
  const path = `/shop-${opened}`;
  const account = await openAccount(server.url);
  const tier = `${server.url}/operator/tenants/${account.id}/tier`;
  expect((await ask(tier, "PUT", server.operatorToken(), { tier: "enterprise" })).status).toBe(200);
  const webhooks = [
    { webhook_url: receiver.url + path, name: "Shop" },
    { webhook_url: `${receiver.url}/audit`, name: "Audit" },
  ];
  await account.setWebhooks(...webhooks);
  const page: Page = await browser.page({ size });
  await account.signIn(page);
  await page.goto(server.url);
  await page.getByText("Live", { exact: true }).waitFor();
  return { page, account, path, webhooks };
}

/** How many records the list behind a link has. */
async function countOf(account: Account, link: Locator): Promise<number> {
  const { searchParams } = new URL((await link.getAttribute("href")) ?? "", server.url);
  const state = { delivered: "/state/DELIVERED", failed: "/state/FAILED" }[searchParams.get("state") ?? ""] ?? "";
  searchParams.delete("state");
  return (await account.get<{ total: number }>(`/v1/events${state}?${searchParams}`)).total;
}
