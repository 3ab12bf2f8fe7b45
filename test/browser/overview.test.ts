import { describe, expect, test } from "bun:test";
import type { Page, Route } from "playwright-core";
import { noBrowser, openBrowser } from "./browser.ts";
import { startExecutable } from "./executable.ts";
import { startObedientReceiver } from "./obedient-receiver.ts";
import { type Account, openAccount } from "./signed-in.ts";
import { follow, seeHeading, seePath, seeText } from "./visitor.ts";

const server = await startExecutable();
const receiver = startObedientReceiver();
const browser = openBrowser(server.url);

/** What the page reads from the server. */
const reads = /\/v1\/(stats|events|failures)/;

/** The webhook as it is called while it has no name. */
const hook = receiver.url.replace("http://", "");

const sizes = ["desktop", "phone"] as const;

describe.skipIf(noBrowser !== null)("the overview", () => {
  test.each(sizes)("of an account without events says so, and leads to the first one, on a %s", async (size) => {
    const page = await browser.page({ size });
    await (await openAccount(server.url)).signIn(page);
    await page.goto(server.url);
    await seeText(page, "No events yet.");
    await browser.inspect(page, "overview-empty");
    await follow(page, "Send your first event");
    await seePath(page, "/welcome");
  });

  test.each(sizes)("shows what is delivered, what fails and what waits as it happens, on a %s", async (size) => {
    const account = await openWithWebhook();
    const page = await browser.page({ size });
    await account.signIn(page);
    await page.goto(server.url);
    await seeText(page, "No events yet.");

    await account.ingestAll([{ n: 1 }, { n: 2 }, { n: 3 }, { answer: 410 }, { answer: 503 }]);
    await seeFigure(page, "Delivered", "375 % of those finished");
    await seeFigure(page, "Failed", "1");
    await seeFigure(page, "Waiting", /^1oldest/);
    await seeFigure(page, "This month", "5of 10\u202f000 events · 0 refused");
    await page.getByRole("img", { name: /5 events were accepted, 3 deliveries succeeded and 1 failed/ }).waitFor();
    await page.getByRole("img", { name: /half of the attempts with a response took up to \d/ }).waitFor();
    // Something was delivered within the last minute: so it is not down.
    await seeText(page, `${hook} fails for some events. 1 delivery failed and can be replayed.`);
    await page.getByText("HTTP 410").waitFor();
    await page.getByText("being retried").waitFor();
    await browser.inspect(page, "overview");
    if (size === "phone") return;

    await account.ingestAll([{ n: 4 }, { answer: 404 }]);
    await seeFigure(page, "Delivered", "466.7 % of those finished");
    await page.getByText("HTTP 404").waitFor();
  });

  test("says in words that nothing is delivered and that the quota is used up, and leads to both", async () => {
    const account = await openWithWebhook();
    await account.ingestAll([{ answer: 410 }, { answer: 404 }]);
    const page = await browser.page({ size: "phone" });
    await account.signIn(page);
    await page.route("**/v1/tenants/me", async (route) => {
      const response = await route.fetch();
      const refused_this_month = { quota: 30, inactive: 0, invalid: 8 };
      const full = { ...(await response.json()), events_this_month: 10_000, refused_this_month };
      await route.fulfill({ response, json: full });
    });
    await page.goto(server.url);
    const verdict = page.locator(".verdict.bar.bad", { hasText: "Nothing is delivered." });
    await verdict.getByText(`${hook} has failed since`).waitFor();
    await seeFigure(page, "Delivered", "00 % success");
    await seeFigure(page, "This month", "10\u202f000of 10\u202f000 events · 38 refused");
    await page.locator(".figure b.failed", { hasText: "0 % success" }).waitFor();
    await seeText(
      page,
      /^This month's 10\u202f000 events are used up: new events are refused \(429\) until \d{4}-\d\d-/,
    );
    await browser.inspect(page, "overview-worst");
    await follow(page, "Check the webhooks");
    await seePath(page, "/webhooks");
    await follow(page, "See the plan");
    await seePath(page, "/plan");
    await seeText(page, "38 refused: 30 beyond the quota, 8 not valid, 0 while the account was inactive.");

    // Some success, and the verdict is another one.
    await account.ingest({ n: 1 });
    await page.goto(server.url);
    await seeText(page, `${hook} delivers. 2 deliveries failed and can be replayed.`);
    expect(await page.locator(".figure b.failed").count()).toBe(0);
  });

  test("says that the quota is nearly used up", async () => {
    const account = await openWithWebhook();
    await account.ingest({ n: 1 });
    const page = await browser.page({ size: "phone" });
    await account.signIn(page);
    await page.route("**/v1/tenants/me", async (route) => {
      const response = await route.fetch();
      await route.fulfill({ response, json: { ...(await response.json()), events_this_month: 8_000 } });
    });
    await page.goto(server.url);
    await seeText(page, "8\u202f000 of this month's 10\u202f000 events are used.");
    await seeText(page, `${hook} delivers.`);
    await page.locator(".figure .meter.warn").waitFor();
    await browser.inspect(page, "overview-nearly");
    await follow(page, "Events");
    await seePath(page, "/events");
    expect(await page.getByText("events are used").count()).toBe(0);
  });

  test("draws both charts over one axis of time, and nothing among deliveries that counts events", async () => {
    const account = await openWithWebhook();
    await account.ingest({ n: 1 });
    const page = await browser.page({ size: "desktop" });
    await account.signIn(page);
    await page.goto(server.url);
    await seeChart(page, "1 deliveries succeeded");
    const boxes = await Promise.all([0, 1].map((nth) => page.locator(".chart-plot .u-over").nth(nth).boundingBox()));
    expect(boxes[0]).toMatchObject({ y: boxes[1]?.y, width: boxes[1]?.width });
    const legend = page.getByRole("region", { name: /^Deliveries/ }).getByRole("listitem");
    expect(await legend.allTextContents()).toEqual(["Delivered 1", "Failed 0", "Accepted 1"]);
    expect(await legend.locator("i").count()).toBe(2);
  });

  test("looks back as far as its URL says, also after a reload and on the way back", async () => {
    const account = await openWithWebhook();
    await account.ingest({ n: 1 });
    const page = await browser.page({ size: "desktop" });
    await account.signIn(page);
    await page.goto(server.url);
    await seeHeading(page, "Deliveries per minute, stacked by outcome");
    await follow(page, "7 d");
    await seeHeading(page, "Deliveries per 2 hours, stacked by outcome");
    expect(new URL(page.url()).search).toBe("?range=7d");
    await page.reload();
    await seeHeading(page, "Deliveries per 2 hours, stacked by outcome");
    await page.locator(".segments [aria-current]", { hasText: "7 d" }).waitFor();
    await page.goBack();
    await seeHeading(page, "Deliveries per minute, stacked by outcome");
  });

  test("has the figures of each chart as a table, by keyboard alone", async () => {
    const account = await openWithWebhook();
    await account.ingestAll([{ n: 1 }, { answer: 410 }]);
    const page = await browser.page({ size: "phone" });
    await account.signIn(page);
    await page.goto(server.url);
    await seeChart(page, "1 deliveries succeeded and 1 failed");
    const panel = page.getByRole("region", { name: "Deliveries per minute, stacked by outcome" });
    await panel.getByText("Figures as a table").focus();
    await page.keyboard.press("Enter");
    const rows = panel.getByRole("row");
    await rows.nth(60).waitFor();
    const figures = (await rows.allInnerTexts()).map((row) => row.split("\t"));
    expect(figures[0]).toEqual(["From", "Delivered", "Failed", "Accepted"]);
    const sums = [1, 2, 3].map((column) => figures.slice(1).reduce((sum, row) => sum + Number(row[column]), 0));
    expect(sums).toEqual([1, 1, 2]);
    await browser.inspect(page, "overview-table");
  });

  test("names the figures of the bucket that is pointed at", async () => {
    const account = await openWithWebhook();
    await account.ingest({ n: 1 });
    const page = await browser.page({ size: "desktop" });
    await account.signIn(page);
    await page.goto(`${server.url}/?range=7d`);
    await seeChart(page, "1 deliveries succeeded");
    const panel = page.getByRole("region", { name: "Deliveries per 2 hours, stacked by outcome" });
    await panel.locator("canvas").hover({ position: { x: 120, y: 60 }, force: true });
    await panel.getByText(/^\d+ [A-Z][a-z]{2} \d\d:\d\d · click or drag for events$/).waitFor();
    expect(await panel.getByRole("listitem").allTextContents()).toEqual(["Delivered 0", "Failed 0", "Accepted 0"]);
    await page.mouse.move(0, 0);
    await panel.getByText(/^since \d+ [A-Z][a-z]{2} \d\d:00, with replays, UTC/).waitFor();
    expect(await panel.getByRole("listitem").first().textContent()).toBe("Delivered 1");
  });

  test("leads from a bucket, from several and from a row of the table to the events of that time", async () => {
    const account = await openWithWebhook();
    await account.ingest({ n: 1 });
    const page = await browser.page({ size: "desktop" });
    await account.signIn(page);
    await page.goto(`${server.url}/?range=24h`);
    await seeChart(page, "1 deliveries succeeded");
    const plot = page.locator(".chart-plot .u-over");
    const box = await plot.first().boundingBox();
    const quarterHour = 900_000;
    const sinceFullHour = Date.now() % (4 * quarterHour);
    const buckets = 97 + Math.floor(sinceFullHour / quarterHour);
    const [x, y, bucket] = [box?.x ?? 0, (box?.y ?? 0) + 60, (box?.width ?? 0) / buckets];

    // The last bucket, which is the one of now.
    await page.mouse.click(x + (buckets - 0.5) * bucket, y);
    await seePath(page, "/events");
    const one = chosenTimes(page);
    expect(one.to - one.from).toBe(quarterHour - 1);
    expect(Date.now()).toBeWithin(one.from, one.to + quarterHour);
    await page.getByRole("link", { name: /evt_/ }).waitFor();

    await page.goBack();
    await seeChart(page, "1 deliveries succeeded");
    await page.mouse.move(x + 10.5 * bucket, y);
    await page.mouse.down();
    await page.mouse.move(x + 12.5 * bucket, y, { steps: 3 });
    await page.mouse.up();
    await seePath(page, "/events");
    const three = chosenTimes(page);
    expect(three.to - three.from).toBe(3 * quarterHour - 1);
    expect(one.from - three.from).toBe((buckets - 11) * quarterHour);

    await page.goBack();
    const panel = page.getByRole("region", { name: /^Response time/ });
    await panel.getByText("Figures as a table").click();
    await panel.getByRole("row").nth(1).getByRole("link").click();
    await seePath(page, "/events");
    expect(chosenTimes(page)).toEqual(one);
  });

  test("draws its charts in the colours of the scheme, also when that changes", async () => {
    const account = await openWithWebhook();
    await account.ingest({ n: 1 });
    const page = await browser.page({ size: "desktop" });
    await account.signIn(page);
    await page.goto(server.url);
    await seeFigure(page, "Delivered", /^1/);
    const colours: string[] = [];
    for (const colorScheme of ["light", "dark", "light"] as const) {
      await page.emulateMedia({ colorScheme });
      const colour = await page.evaluate<string>(massColour);
      await page.evaluate(untilDrawnIn(colour));
      colours.push(colour);
    }
    expect(new Set(colours).size).toBe(2);
  });

  test.each(sizes)("has the shape of what comes while it is loading, on a %s", async (size) => {
    const account = await openWithWebhook();
    await account.ingest({ n: 1 });
    const page = await browser.page({ size });
    await account.signIn(page);
    let isHeld = true;
    const held: Route[] = [];
    await page.route(reads, (route) => (isHeld ? void held.push(route) : route.continue()));
    await page.goto(server.url);
    await page.locator("[aria-busy=true] .charts").waitFor();
    await page.locator("[aria-busy=true] .figures").waitFor();
    await browser.inspect(page, "overview-loading");
    isHeld = false;
    await Promise.all(held.map((route) => route.continue()));
    await seeFigure(page, "Delivered", /^1/);
  });

  test("shows what failed, and lists it, on a machine whose clock is hours off", async () => {
    const account = await openWithWebhook();
    await account.ingestAll([{ answer: 410 }, { answer: 404 }]);
    const page = await browser.page({ size: "desktop" });
    await account.signIn(page);
    await page.clock.setSystemTime(Date.now() + 3 * 3_600_000);
    await page.goto(server.url);
    await seeFigure(page, "Failed", "2");
    await page.getByRole("img", { name: /2 events were accepted, 0 deliveries succeeded and 2 failed/ }).waitFor();
    await page.goto(`${server.url}/events?time=1h&state=failed`);
    await page.getByText(/^HTTP 410 ·/).waitFor();
  });

  test.each(["/", "/webhooks/"])("moves on when nothing happens, at %s", async (path) => {
    const account = await openWithWebhook();
    await account.ingest({ n: 1 });
    const [webhook] = await account.get<{ id: string }[]>("/v1/tenants/webhooks?expand=true");
    const page = await browser.page({ size: "desktop" });
    await account.signIn(page);
    await page.clock.install();
    await page.goto(`${server.url}${path === "/" ? path : path + webhook?.id}`);
    await seeFigure(page, "Delivered", /^1/);
    const isRead = page.waitForRequest(/\/v1\/failures/);
    await page.clock.fastForward("01:00");
    await isRead;
  });

  test("says what went wrong, and tries again", async () => {
    const account = await openWithWebhook();
    await account.ingest({ n: 1 });
    const page = await browser.page({ size: "phone", provoked: [/^503: /] });
    await account.signIn(page);
    const json = { message: "The storage does not answer; repeat the request.", code: "storage_unavailable" };
    await page.route(reads, (route) => route.fulfill({ status: 503, json }));
    await page.goto(server.url);
    const alerts = page.getByRole("alert").filter({ hasText: json.message });
    await alerts.nth(1).waitFor();
    // Shortly after it was opened the page reads its statistics once more.
    await page.waitForResponse((answer) => answer.url().includes("/v1/stats"));
    await browser.inspect(page, "overview-error");
    await page.unroute(reads);
    const again = page.getByRole("button", { name: "Try again" });
    await again.first().click();
    await seeFigure(page, "Delivered", /^1/);
    await again.click();
    await page.locator("canvas").nth(1).waitFor();
    expect(await alerts.count()).toBe(0);
  });

  test("opens in a browser whose language is none", async () => {
    const account = await openWithWebhook();
    await account.ingest({ n: 1 });
    const page = await browser.page({ size: "desktop" });
    await account.signIn(page);
    await page.addInitScript("Object.defineProperty(navigator, 'language', { get: () => 'en-US@posix' })");
    await page.goto(server.url);
    await page.locator("canvas").first().waitFor();
  });
});

// What runs in the page is text: these sources are compiled without the types of a browser.

/** The token that fills the bars of what was delivered. */
const massColour = "getComputedStyle(document.documentElement).getPropertyValue('--delivered-mass').trim()";

/** Resolves when the first chart has more than a few pixels of a colour. */
const untilDrawnIn = (colour: string) => `new Promise((resolve) => {
  const copy = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const wanted = [${[1, 3, 5].map((at) => Number.parseInt(colour.slice(at, at + 2), 16)).join()}];
  const look = () => {
    const { width, height } = Object.assign(copy.canvas, { width: 800, height: 400 });
    copy.drawImage(document.querySelector("canvas"), 0, 0);
    const { data } = copy.getImageData(0, 0, width, height);
    let found = 0;
    for (let i = 0; i < data.length; i += 4) if (wanted.every((value, part) => data[i + part] === value)) found += 1;
    if (found > 20) resolve();
    else requestAnimationFrame(look);
  };
  look();
})`;

async function openWithWebhook(): Promise<Account> {
  const account = await openAccount(server.url);
  await account.setWebhooks({ webhook_url: receiver.url });
  return account;
}

function chosenTimes(page: Page): { from: number; to: number } {
  const { searchParams } = new URL(page.url());
  return { from: Date.parse(searchParams.get("from") ?? ""), to: Date.parse(searchParams.get("to") ?? "") };
}

/** The figures of the charts are written once a second. */
const seeChart = (page: Page, text: string) => page.getByRole("img", { name: text }).waitFor();

/** @param text the figure and what stands beside it */
const seeFigure = (page: Page, name: string, text: string | RegExp) =>
  page
    .locator(".figure")
    .filter({ has: page.getByRole("link", { name, exact: true }) })
    .locator("dd")
    .first()
    .filter({ hasText: typeof text === "string" ? new RegExp(`^${text}$`) : text })
    .waitFor();
