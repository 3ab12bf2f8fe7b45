import { describe, expect, test } from "bun:test";
import type { Page } from "playwright-core";
import { count } from "../../web/format/number.ts";
import { until } from "../support/api-server.ts";
import { noBrowser, openBrowser } from "./browser.ts";
import { startExecutable } from "./executable.ts";
import { hide, openHidden, show } from "./sight.ts";
import { type Account, openAccount } from "./signed-in.ts";
import { installStreamMeter, readMeter } from "./stream-meter.ts";
import { follow, press, seeHeading, seeText } from "./visitor.ts";
import { startWire } from "./wire.ts";

const server = await startExecutable();
const wire = await startWire(server.url);
const browser = openBrowser(wire.url);

/** What the browser says of a connection that a test takes away. */
const lost = /^no answer: /;
/** A server that has just begun, or is about to end. */
const busy = /^503: /;

const offline = "The connection to the server was lost. This page may be out of date. It reconnects automatically.";
const missed = "Some updates were missed while you were away. Refreshing everything.";

/** More than the server keeps for a stream. */
const tooMany = 1100;

describe.skipIf(noBrowser !== null)("without a connection", () => {
  test("a quiet bar says so on a phone, too", async () => {
    const { page } = await openLive({ size: "phone" });
    wire.cut();
    await seeText(page, offline);
    await browser.inspect(page, "offline");
    // What it has stays, and nothing else complains.
    await page.locator("canvas").first().waitFor();
    expect(await page.getByRole("alert").count()).toBe(0);
  });

  test("a quiet bar says so, the page goes on with what it has, and then shows what happened meanwhile", async () => {
    const { account, page } = await openLive({ size: "desktop" });
    await account.ingest({ n: 1 });
    await seeAll(page, account);
    wire.cut();
    await seeText(page, offline);
    await seeText(page, "Offline");
    await browser.inspect(page, "offline");
    await page
      .getByRole("region", { name: /^Deliveries/ })
      .getByText("Figures as a table")
      .click();
    await page.getByRole("row").nth(60).waitFor();

    await account.ingestAll([{ n: 2 }, { n: 3 }]);
    wire.mend();
    await seeText(page, "Live");
    await seeAccepted(page, 4);
    await page.getByText(offline).waitFor({ state: "detached" });
    // It resumed where it was, and nothing was lost.
    expect(await readMeter(page)).toMatchObject({ messages: 3, resyncs: 0 });
  });

  test("a view that could not be read is there again by itself", async () => {
    const { account, page } = await openLive({ size: "phone" });
    await follow(page, "Webhooks");
    await seeHeading(page, "Webhooks");
    wire.cut();
    await seeText(page, offline);
    await follow(page, "Overview");
    await seeText(page, "The server cannot be reached.");
    wire.mend();
    await seeAll(page, account);
    expect(await page.getByRole("alert").count()).toBe(0);
  });

  test("an action says that it was not possible, and that only until it is", async () => {
    const { page } = await openLive({ size: "desktop" });
    await follow(page, "API keys");
    await press(page, "Rotate the key …");
    wire.cut();
    await seeText(page, offline);
    await press(page, "Rotate the key");
    const refusal = page.getByRole("alert").filter({ hasText: "The server cannot be reached." });
    await refusal.waitFor();
    wire.mend();
    await seeText(page, "Live");
    await refusal.waitFor({ state: "detached" });
  });

  test("that is the browser's own, the same is true", async () => {
    const { account, page } = await openLive({ size: "desktop" });
    await page.context().setOffline(true);
    await seeText(page, offline);
    await account.ingest({ n: 1 });
    await page.context().setOffline(false);
    await seeAll(page, account);
    expect(await readMeter(page)).toMatchObject({ messages: 1, resyncs: 0 });
  });
});

describe.skipIf(noBrowser !== null)("a page that is opened", () => {
  test("shows also what happened before its stream began", async () => {
    const { account, page } = await openSignedIn();
    const mayBegin = Promise.withResolvers<void>();
    await page.route("**/v1/stream", async (route) => {
      await mayBegin.promise;
      await route.continue();
    });
    await page.goto(wire.url);
    await seeAll(page, account);
    await account.ingest({ n: 1 });
    mayBegin.resolve();
    await seeAll(page, account);
  });

  test("in a hidden tab shows, once it is seen, what happened until then", async () => {
    const { account, page } = await openSignedIn();
    await openHidden(page);
    await page.goto(wire.url);
    await seeAll(page, account);
    await account.ingest({ n: 1 });
    await show(page);
    await seeAll(page, account);
  });

  test("reads once what it shows when its stream begins in time", async () => {
    const { page } = await openSignedIn();
    await page.addInitScript(patient);
    const reads: string[] = [];
    page.on("request", (request) => reads.push(request.url().slice(wire.url.length)));
    await page.goto(`${wire.url}/events`);
    await page.getByText("Live", { exact: true }).waitFor();
    await page.locator("a.event-row").waitFor();
    expect(reads.filter((read) => read.startsWith("/v1/events?page=0"))).toHaveLength(1);
    expect(reads.filter((read) => read.startsWith("/v1/tenants/webhooks"))).toHaveLength(1);
  });
});

test.skipIf(noBrowser !== null)("figures count what ends in the background, until all of it has", async () => {
  const { account, page } = await openSignedIn();
  using receiver = Bun.serve({ port: 0, fetch: () => new Response(null, { status: 503 }) });
  await account.setWebhooks({ webhook_url: `http://localhost:${receiver.port}/` });
  const events = 4_000;
  for (let n = 0; n < events; n += 1_000)
    await account.ingestAll(Array.from({ length: 1_000 }, (_, i) => ({ n: n + i })));
  await page.goto(wire.url);
  const figures = (waiting: number, failed: number) =>
    page.locator(".figures", { hasText: new RegExp(`Waiting${count(waiting)}(oldest.*)?Failed${count(failed)}`) });
  // One event came before there was a webhook.
  await figures(events, 1).waitFor();
  await account.setWebhooks();
  await figures(0, 1 + events).waitFor();
});

describe.skipIf(noBrowser !== null)("when more happened than the server keeps", () => {
  test("while the connection was cut, the page says that news was missed and reads everything again", async () => {
    const { account, page } = await openLive({ size: "desktop" });
    wire.cut();
    await seeText(page, offline);
    await ingestTooMany(account);
    wire.mend();
    await seeText(page, missed);
    await seeAccepted(page, 1 + tooMany);
    await browser.inspect(page, "resync");
    await page.getByText(missed).waitFor({ state: "detached" });
    await seeText(page, "Live");
    expect(await readMeter(page)).toMatchObject({ messages: 1, resyncs: 1 });
  });

  test("because it was started again, too", async () => {
    const { account, page } = await openLive({ size: "phone" });
    await server.restart();
    await account.ingest({ n: 1 });
    await seeText(page, missed);
    await seeAll(page, account);
  });
});

describe.skipIf(noBrowser !== null)("a laptop that was closed", () => {
  test("has missed nothing when it wakes up, although its connection looks as it did", async () => {
    const { account, page } = await openLive({ size: "desktop", isClockOurs: true });
    wire.stall();
    await account.ingest({ n: 1 });
    expect(await page.getByText("Live", { exact: true }).count()).toBe(1);
    await page.clock.fastForward("08:00");
    await seeAll(page, account);
    // The figures move on by themselves, too, and may be there first.
    const { resyncs } = await until(
      () => readMeter(page),
      ({ messages }) => messages === 1,
    );
    expect(resyncs).toBe(0);
  });

  test("says what it missed when that is more than the server keeps", async () => {
    const { account, page } = await openLive({ size: "desktop", isClockOurs: true });
    wire.stall();
    await ingestTooMany(account);
    await page.clock.fastForward("08:00");
    await seeText(page, missed);
    await seeAll(page, account);
  });

  test("goes on where it was with a token that was renewed meanwhile", async () => {
    const { account, page } = await openLive({ size: "desktop", isClockOurs: true });
    const renewed = page.waitForResponse("**/v1/tenants/auth/refresh");
    await page.clock.fastForward("01:10:00");
    await page.keyboard.press("Shift");
    expect((await renewed).status()).toBe(200);
    await account.ingest({ n: 1 });
    await seeAll(page, account);
    expect(await readMeter(page)).toMatchObject({ messages: 1, resyncs: 0 });
  });
});

test.skipIf(noBrowser !== null)("a tab that the browser froze shows what happened when it thaws", async () => {
  const { account, page } = await openLive({ size: "desktop" });
  const devTools = await page.context().newCDPSession(page);
  await devTools.send("Page.setWebLifecycleState", { state: "frozen" });
  await ingestTooMany(account);
  await devTools.send("Page.setWebLifecycleState", { state: "active" });
  await seeAll(page, account);
});

describe.skipIf(noBrowser !== null)("a tab behind another one", () => {
  test("has no connection of its own, so that a browser has enough for any number of them", async () => {
    const { page } = await openLive({ size: "desktop", isClockOurs: true });
    const others = await Promise.all(Array.from({ length: 8 }, () => page.context().newPage()));
    const open = async (other: Page) => {
      await openHidden(other);
      await other.goto(`${wire.url}/keys`);
      await seeText(other, "Created");
      await other.getByText("Connecting", { exact: true }).waitFor();
    };
    await Promise.all(others.map(open));
    let seen = page;
    for (const other of others) {
      await hide(seen);
      await show(other);
      await other.getByText("Live", { exact: true }).waitFor();
      await page.clock.fastForward("00:05");
      await seen.getByText("Connecting", { exact: true }).waitFor();
      seen = other;
    }
    await follow(seen, "Events");
    await seeHeading(seen, "Events");
  });

  test("keeps it during a glance at the other; later it does not say Live, and goes on where it was", async () => {
    const { account, page } = await openLive({ size: "desktop", isClockOurs: true });
    let connections = 0;
    page.on("request", (request) => {
      if (request.url().endsWith("/v1/stream")) connections += 1;
    });
    await hide(page);
    await page.clock.fastForward("00:04");
    await show(page);
    await page.clock.fastForward("00:04");
    await account.ingest({ n: 1 });
    await seeAll(page, account);
    expect(connections).toBe(0);

    await hide(page);
    await page.clock.fastForward("00:05");
    await page.getByText("Connecting", { exact: true }).waitFor();
    await account.ingest({ n: 2 });
    await show(page);
    await page.getByText("Live", { exact: true }).waitFor();
    await seeAll(page, account);
    expect(connections).toBe(1);
    expect(await readMeter(page)).toMatchObject({ messages: 2, resyncs: 0 });
  });
});

test.skipIf(noBrowser !== null)(
  "a connection that goes quiet is given up, whatever the system thinks of it",
  async () => {
    const { account, page } = await openLive({ size: "desktop", isClockOurs: true });
    wire.stall();
    await account.ingest({ n: 1 });
    let isAskedAgain = false;
    const askedAgain = page.waitForRequest("**/v1/stream").then(() => {
      isAskedAgain = true;
    });
    // Nobody slept: the clock goes on in small steps, and no comment of the server comes.
    let seconds = 0;
    for (; !isAskedAgain && seconds < 60; seconds += 2) await page.clock.runFor(2000);
    await askedAgain;
    expect(seconds).toBeWithin(30, 42);
    await seeAccepted(page, 2);
    expect(await readMeter(page)).toMatchObject({ messages: 1, resyncs: 0 });
  },
);

test.skipIf(noBrowser !== null)("one dashboard too many is told so, and goes live when there is room", async () => {
  const account = await openAccount(server.url);
  await account.ingest({ n: 0 });
  const others = await Promise.all(Array.from({ length: 50 }, () => openOther(account)));
  const page = await browser.page({ size: "desktop", provoked: [/^429: /] });
  await page.clock.install();
  await account.signIn(page);
  await page.goto(wire.url);
  await seeText(page, /The account has 50 open streams, which is the limit; close one\. This page may be out of date/);
  await seeAll(page, account);
  await browser.inspect(page, "too-many-streams");
  for (const { abort } of others) abort();
  await page.clock.fastForward("00:30");
  await seeText(page, "Live");
});

/** A machine that does much else is no slower than a page is patient. */
const patient = `{
  const { setTimeout } = globalThis;
  globalThis.setTimeout = (run, ms, ...rest) => setTimeout(run, ms === 250 ? 60_000 : ms, ...rest);
}`;

async function openSignedIn(): Promise<{ account: Account; page: Page }> {
  wire.mend();
  const account = await openAccount(server.url);
  await account.ingest({ n: 0 });
  const page = await browser.page({ size: "desktop" });
  await account.signIn(page);
  return { account, page };
}

/** Signed in on the overview of an account with one event, and live. */
async function openLive({
  size,
  isClockOurs = false,
}: {
  size: "desktop" | "phone";
  isClockOurs?: boolean;
}): Promise<{ account: Account; page: Page }> {
  wire.mend();
  const account = await openAccount(server.url);
  await account.ingest({ n: 0 });
  const page = await browser.page({ size, provoked: [lost, busy] });
  if (isClockOurs) await page.clock.install();
  await installStreamMeter(page);
  await account.signIn(page);
  await page.goto(wire.url);
  await page.getByText("Live", { exact: true }).waitFor();
  await seeAll(page, account);
  await page.locator("canvas").first().waitFor();
  // What is still being read when a test cuts the wire would say that it could not be.
  await page.locator("[aria-busy=true]").first().waitFor({ state: "detached" });
  return { account, page };
}

/** @returns with the answer: one that nobody holds is collected, and its stream ends */
async function openOther({ jwt }: Account): Promise<{ abort(): void; answer: Response }> {
  const abort = new AbortController();
  const headers = { Authorization: `Bearer ${jwt}` };
  const answer = await fetch(`${server.url}/v1/stream`, { headers, signal: abort.signal });
  expect(answer.status).toBe(200);
  return { abort: () => abort.abort(), answer };
}

async function ingestTooMany(account: Account): Promise<void> {
  for (const length of [1000, tooMany - 1000]) await account.ingestAll(Array.from({ length }, (_, n) => ({ n })));
}

/** Without a webhook every event fails: the page counts as many as there are. */
async function seeAll(page: Page, account: Account): Promise<void> {
  const { total } = await account.get<{ total: number }>("/v1/events?size=1");
  await page.getByRole("link", { name: `See ${count(total)} ${total === 1 ? "event" : "events"} with` }).waitFor();
}

/** In the sentence of the chart, which is read from the server. */
const seeAccepted = (page: Page, events: number) =>
  page
    .getByRole("img", { name: `${String(events).replace(/\B(?=(\d{3})+$)/g, "\u202f")} events were accepted` })
    .waitFor();
