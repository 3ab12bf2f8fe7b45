import { describe, expect, test } from "bun:test";
import { noBrowser, openBrowser } from "./browser.ts";
import { eventLists, focused, idsOf, row, scroll, see, seeIds, untilLive } from "./event-list.ts";
import { startExecutable } from "./executable.ts";
import { startObedientReceiver } from "./obedient-receiver.ts";
import { openAccount } from "./signed-in.ts";
import { hold, nextFrame } from "./visitor.ts";

// One retry at once, and one that no test sees.
const server = await startExecutable({ POSTRIDER_RETRY_SCHEDULE: "10ms,1h" });
const browser = openBrowser(server.url);
const openEvents = eventLists(browser, server.url);
const receiver = startObedientReceiver();
const hook = `${receiver.url}/orders?source=postrider`;

/** By what was just said; at the end of the page, and in a window that is so low that the list goes on below. */
const isPagerCovered = `(() => {
  const isCovered = () => {
    const [pager, said] = [".pager", ".said"].map((name) => document.querySelector(name).getBoundingClientRect());
    return pager.top < said.bottom && said.top < pager.bottom && pager.left < said.right && said.left < pager.right;
  };
  scrollTo(0, document.body.scrollHeight);
  const atEnd = isCovered();
  document.querySelector(".rows").style.paddingBottom = "2000px";
  scrollTo(0, 0);
  return [atEnd, isCovered()];
})()`;

describe.skipIf(noBrowser !== null)("the list of events", () => {
  test.each(["desktop", "phone"] as const)("says how each delivery stands, on a %s", async (size) => {
    const account = await openAccount(server.url);
    await account.ingest({ event_type: "too.early" });
    await account.setWebhooks({ webhook_url: hook, name: "Orders" });
    const failed = await account.ingest({ answer: 404 });
    const waiting = await account.ingest({ answer: 503 });
    const delivered = await account.ingest({});
    const page = await openEvents(account, { size });
    await see(row(page, /Delivered · .+ m?s · 1 try/));
    await see(row(page, /HTTP 503 · .+ms · 2 tries · next in \d+ (min|h)/));
    // By its type, or else by how its payload begins.
    await see(row(page, /HTTP 404 · .+ms · 1 try/).getByText('{"answer":404}', { exact: true }));
    await see(row(page, "too.early"));
    await see(row(page, "No webhook was registered").getByText("no webhook", { exact: true }));
    expect(await idsOf(page)).toEqual([delivered, waiting, failed, expect.stringMatching(/^evt_/)]);
    await see(page.getByText("1–4 of 4"));
    await browser.inspect(page, "events");

    await page.keyboard.press("r");
    await see(page.getByText("Select an event first with j or k."));
    expect(await page.evaluate<boolean[]>(isPagerCovered)).toEqual([false, false]);
  });

  test("tells a new account what to do, and shows its first event by itself", async () => {
    const account = await openAccount(server.url);
    const page = await openEvents(account, { size: "phone" });
    await see(page.getByRole("link", { name: "Send your first event" }));
    expect(await page.getByRole("link", { name: "Send your first event" }).getAttribute("href")).toBe("/welcome");
    await browser.inspect(page, "events-none");
    await untilLive(page);
    await account.ingest({});
    await see(row(page, "No webhook was registered"));
  });

  test.each(["desktop", "phone"] as const)(
    "counts what has come since, moves nothing, and shows it when asked, on a %s",
    async (size) => {
      const account = await openAccount(server.url);
      await account.ingestAll(Array.from({ length: 40 }, (_, n) => ({ n })));
      const page = await openEvents(account, { size });
      await untilLive(page);
      const third = page.locator("a.event-row").nth(2);
      // Before there are rows, nothing can be scrolled.
      await third.waitFor();
      await scroll(page, 300);
      const box = await third.boundingBox();
      const before = await idsOf(page);

      await account.ingest({ news: 1 });
      await see(page.getByRole("button", { name: "1 new", exact: true }));
      const news = await account.ingestAll([{ news: 2 }, { news: 3 }]);
      const pill = page.getByRole("button", { name: "3 new", exact: true });
      await see(pill);
      expect(await third.boundingBox()).toEqual(box);
      expect(await idsOf(page)).toEqual(before);
      await browser.inspect(page, "events-news");

      await pill.click();
      await page.locator(`a.event-row[href="/events/${news[1]}"]`).waitFor();
      expect((await idsOf(page)).slice(0, 2)).toEqual([news[1] ?? "", news[0] ?? ""]);
      expect(await page.evaluate<number>("scrollY")).toBe(0);
      await see(page.getByText("1–43 of 43"));
      expect(await page.getByRole("button", { name: /new/ }).count()).toBe(0);

      const some = Array.from({ length: 600 }, (_, n) => ({ n }));
      await account.ingestAll(some);
      await see(page.getByRole("button", { name: "600 new", exact: true }));
      await account.ingestAll(some);
      await see(page.getByRole("button", { name: "999+ new", exact: true }));
    },
  );

  test("shows what has come since also when that is asked for while it is read, or a row is replayed", async () => {
    const account = await openAccount(server.url);
    await account.setWebhooks({ webhook_url: hook });
    const oldest = await account.ingest({ answer: 404 });
    const page = await openEvents(account);
    await untilLive(page);
    await see(row(page, /HTTP 404 · .+ms · 1 try/));

    const second = await account.ingest({});
    await see(page.getByRole("button", { name: "1 new", exact: true }));
    const newest = await hold(page, "**/v1/events?*");
    await page.getByRole("button", { name: "1 new", exact: true }).click();
    await newest.untilAsked;
    await page.keyboard.press("j");
    await page.keyboard.press("r");
    await see(page.getByRole("link", { name: "See the replay" }));
    await newest.answer();
    await seeIds(page, [second, oldest]);

    const third = await account.ingest({});
    await see(page.getByRole("button", { name: "1 new", exact: true }));
    // A webhook that is removed ends deliveries, so the list is read again by itself.
    const earlier = await hold(page, "**/v1/events?*");
    await account.setWebhooks();
    await earlier.untilAsked;
    await page.getByRole("button", { name: "1 new", exact: true }).click();
    await earlier.answer();
    await seeIds(page, [third, second, oldest]);
  });

  test("lets a row say what became of it, where it stands", async () => {
    const account = await openAccount(server.url);
    await account.setWebhooks({ webhook_url: hook });
    await account.ingest({});
    const id = await account.ingest({ answer: "later" });
    const page = await openEvents(account);
    await untilLive(page);
    const link = page.locator(`a.event-row[href="/events/${id}"]`);
    await see(link.getByText("Waiting", { exact: true }).last());
    const box = await link.boundingBox();
    receiver.answerNow();
    await see(link.getByText(/Delivered · .+ m?s · 1 try/));
    expect(await link.boundingBox()).toEqual(box);

    // A list of what waits keeps the row, too, until it is asked again.
    await account.post("/v1/events/replays/all", { replayGroupId: "again" });
    await see(link.getByText(/Delivered · .+ m?s · 2 tries/));
  });

  test("counts what newly failed in a list of failures", async () => {
    const account = await openAccount(server.url);
    await account.setWebhooks({ webhook_url: hook });
    const first = await account.ingest({ answer: 404 });
    const page = await openEvents(account, {}, "?state=failed");
    await seeIds(page, [first]);
    await untilLive(page);
    await account.ingest({});
    const second = await account.ingest({ answer: 410 });
    await page.getByRole("button", { name: "1 newly failed" }).click();
    await seeIds(page, [second, first]);
  });

  test("has pages that do not shift while events arrive, and that a reload keeps", async () => {
    const account = await openAccount(server.url);
    const ids = await account.ingestAll(Array.from({ length: 120 }, (_, n) => ({ n })));
    const newest = [...ids].reverse();
    // Another millisecond, so another time.
    const last = await account.ingest({ last: true });
    const page = await openEvents(account);
    await see(page.getByText("1–50 of 121"));
    await account.ingestAll(Array.from({ length: 7 }, (_, n) => ({ n })));
    await scroll(page, 300);
    await page.getByRole("link", { name: "Next" }).click();
    await seeIds(page, newest.slice(49, 99));
    await see(page.getByText("51–100 of 121"));
    expect(await page.evaluate("scrollY")).toBe(0);
    await account.ingestAll(Array.from({ length: 60 }, (_, n) => ({ n })));
    await page.reload();
    await seeIds(page, newest.slice(49, 99));
    await page.getByRole("link", { name: "Next" }).click();
    await seeIds(page, newest.slice(99));
    expect(await page.getByRole("button", { name: "Next" }).isDisabled()).toBe(true);
    await page.getByRole("link", { name: "Previous" }).click();
    await page.getByRole("link", { name: "Previous" }).click();
    await seeIds(page, [last, ...newest.slice(0, 49)]);
    await page.getByRole("link", { name: "Newest" }).click();
    await see(page.getByText("1–50 of 188"));
    await page.goto(`${server.url}/events?page=99`);
    await page.getByRole("link", { name: "Go to the first page" }).click();
    await see(page.getByText("1–50 of 188"));
  });

  test("is walked by keyboard", async () => {
    const account = await openAccount(server.url);
    await account.setWebhooks({ webhook_url: hook });
    const oldest = await account.ingest({ answer: 404 });
    const newest = await account.ingest({});
    const page = await openEvents(account, { permissions: ["clipboard-read", "clipboard-write"] });
    await see(row(page, /HTTP 404 · .+ms · 1 try/));
    await page.keyboard.press("j");
    await see(focused(page.locator(`a[href="/events/${newest}"]`)));
    await page.keyboard.press("j");
    await page.keyboard.press("j");
    await see(focused(page.locator(`a[href="/events/${oldest}"]`)));
    await browser.inspect(page, "events-by-keyboard");

    await page.keyboard.press("c");
    await see(page.getByText(/^Copied for 127\.0\.0\.1:\d+ without the URL's query/));
    expect(await page.evaluate("navigator.clipboard.readText()")).toContain(oldest);

    // A key that is held down is one press, however long.
    receiver.answerAlways(200);
    const replay = await hold(page, "**/v1/events/replays/single");
    const replays: string[] = [];
    page.on("request", (request) => {
      if (request.url().endsWith("/replays/single")) replays.push(request.url());
    });
    await page.keyboard.down("r");
    await replay.untilAsked;
    await page.keyboard.down("r");
    await page.keyboard.up("r");
    // Nor are two taps two replays.
    await page.keyboard.press("r");
    await replay.answer();
    await see(page.getByRole("link", { name: "See the replay" }));
    await see(row(page, /Delivered · .+ms · 2 tries/));
    expect(replays).toHaveLength(1);

    // What was acknowledged is sent again only by somebody who says so.
    await page.keyboard.down("r");
    const dialog = page.getByRole("dialog", { name: "Replay this delivery?" });
    await see(dialog.getByText(/ acknowledged the event already, and would get it again\.$/));
    await browser.inspect(page, "events-again");
    await dialog.getByRole("button", { name: "Not now" }).click();
    await dialog.waitFor({ state: "detached" });
    await page.keyboard.down("r");
    await nextFrame(page);
    expect(await dialog.count()).toBe(0);
    await page.keyboard.up("r");
    expect(await row(page, /Delivered · .+ms · 2 tries/).count()).toBe(1);
    await page.keyboard.press("r");
    await dialog.getByRole("button", { name: "Replay", exact: true }).click();
    await see(row(page, /Delivered · .+ms · 3 tries/));
    receiver.answerAlways(null);

    await page.keyboard.press("k");
    await page.keyboard.press("Enter");
    await see(page.getByRole("button", { name: "Replay", exact: true }));
    expect(page.url()).toBe(`${server.url}/events/${newest}`);
    await page.keyboard.press("Escape");
    await see(focused(page.locator(`a[href="/events/${newest}"]`)));
    await page.keyboard.press("Escape");
    expect(await page.locator("a.event-row.is-open").count()).toBe(0);
  });

  test("says what is wrong and tries again", async () => {
    const account = await openAccount(server.url);
    await account.ingest({});
    const page = await browser.page({ size: "phone", provoked: [/^503: /] });
    await account.signIn(page);
    const refusal = { status: 503, json: { message: "The server is busy; a retry is safe.", code: "busy" } };
    await page.route("**/v1/events?*", (route) => route.fulfill(refusal));
    await page.goto(`${server.url}/events`);
    await see(page.getByText("The server is busy; a retry is safe."));
    await browser.inspect(page, "events-trouble");
    await page.unroute("**/v1/events?*");
    await page.getByRole("button", { name: "Try again" }).click();
    await see(row(page, "No webhook was registered"));
  });
});
