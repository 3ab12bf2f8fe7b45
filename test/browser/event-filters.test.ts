import { describe, expect, test } from "bun:test";
import { noBrowser, openBrowser } from "./browser.ts";
import {
  chipsOf,
  choose,
  chosen,
  eventLists,
  focused,
  openFilters,
  removeChip,
  row,
  search,
  see,
  seeIds,
} from "./event-list.ts";
import { startExecutable } from "./executable.ts";
import { startObedientReceiver } from "./obedient-receiver.ts";
import { openAccount } from "./signed-in.ts";

const server = await startExecutable({ POSTRIDER_RETRY_SCHEDULE: "10ms,1h" });
const browser = openBrowser(server.url);
const openEvents = eventLists(browser, server.url);
const receiver = startObedientReceiver();
const hook = `${receiver.url}/orders?source=postrider`;

describe.skipIf(noBrowser !== null)("the filters of the list of events", () => {
  test("is filtered by state, by webhook and by time; the URL keeps it", async () => {
    const account = await openAccount(server.url);
    const early = await account.ingest({});
    await account.setWebhooks({ webhook_url: hook, name: "Orders" });
    const failed = await account.ingest({ answer: 404 });
    const delivered = await account.ingest({});
    const page = await openEvents(account);
    await see(row(page, "HTTP 404"), row(page, "Delivered"));

    await choose(page, "State", "Failed");
    await seeIds(page, [failed, early]);
    await choose(page, "Webhook", "Orders");
    await seeIds(page, [failed]);
    await choose(page, "Time", "Last hour");
    await page.waitForURL(/state=failed&webhook=wh_\w+&time=1h$/);
    await seeIds(page, [failed]);
    await page.reload();
    await seeIds(page, [failed]);
    expect(await chosen(page, "State")).toBe("Failed");
    expect(await chosen(page, "Webhook")).toBe("Orders");
    expect(await chosen(page, "Time")).toBe("Last hour");

    await choose(page, "State", "Waiting");
    await see(page.getByText("No events match the filters."));
    await page.goBack();
    await seeIds(page, [failed]);
    await page.goBack();
    await page.goBack();
    await seeIds(page, [failed, early]);
    await page.goForward();
    await seeIds(page, [failed]);

    await page.goto(`${server.url}/events?state=waiting`);
    await page.getByRole("button", { name: "Clear filters" }).click();
    await seeIds(page, [delivered, failed, early]);
    expect(new URL(page.url()).search).toBe("");
  });

  test.each(["desktop", "phone"] as const)(
    "is narrowed by everything at once, and by each thing less again, on a %s",
    async (size) => {
      const account = await openAccount(server.url);
      await account.setWebhooks({ webhook_url: hook, name: "Orders" });
      const paid = { type: "order.paid", customer: "ada@example.com" };
      const [other, found, , , refund] = await account.ingestAll([
        { type: "order.paid", customer: "bob@example.com", answer: 404 },
        { ...paid, answer: 404 },
        { ...paid },
        { ...paid, answer: 410 },
        { type: "refund", answer: 404 },
      ]);
      const page = await openEvents(account, { size });
      await see(page.getByText("1–5 of 5 deliveries"), row(page, /HTTP 410 · .+ms · 1 try/));
      const fields = page.getByRole("combobox", { name: "State" });
      if (size === "phone") {
        expect(await fields.isVisible()).toBe(false);
        await page.getByRole("button", { name: "Filters" }).click();
      }
      await see(fields);

      await search(page, "ada@example.com");
      await choose(page, "State", "Failed");
      await choose(page, "Event type", "order.paid");
      await choose(page, "Webhook", "Orders");
      await choose(page, "Reason", "HTTP 404");
      await choose(page, "Time", "Last hour");
      await page.waitForURL(/\?state=failed&type=order.paid&webhook=wh_\w+&status=404&q=ada%40example.com&time=1h$/);
      await seeIds(page, [String(found)]);
      await see(row(page, "order.paid").getByText("Orders"));
      await browser.inspect(page, "events-narrowed");
      await page.reload();
      await seeIds(page, [String(found)]);
      // It is folded again on a phone, and says how much is chosen.
      if (size === "phone") await see(page.getByRole("button", { name: "Filters (6)" }));
      await browser.inspect(page, "events-narrowed-chips");
      expect(await chipsOf(page)).toEqual([
        ...["“ada@example.com”", "Failed", "order.paid", "Orders", "HTTP 404", "Last hour"],
      ]);

      await removeChip(page, "“ada@example.com”");
      await seeIds(page, [String(found), String(other)]);
      await removeChip(page, "order.paid");
      await seeIds(page, [String(refund), String(found), String(other)]);
      await page.goBack();
      await seeIds(page, [String(found), String(other)]);
      await page.goForward();
      await seeIds(page, [String(refund), String(found), String(other)]);
      await page.getByRole("button", { name: "Clear all" }).click();
      await see(page.getByText("1–5 of 5 deliveries"));
      expect([await chipsOf(page), new URL(page.url()).search]).toEqual([[], ""]);
    },
  );

  test("takes a type and a status that it has never seen, and refuses what is none", async () => {
    const account = await openAccount(server.url);
    const id = await account.ingest({ type: "order.paid" });
    const page = await openEvents(account);
    await choose(page, "Reason", "Another HTTP status …");
    await page.getByLabel("HTTP status", { exact: true }).fill("4040");
    await page.getByRole("button", { name: "Show", exact: true }).click();
    await see(page.getByText("Enter a status from 100 to 999."));
    await browser.inspect(page, "events-status-wrong");
    await page.getByLabel("HTTP status", { exact: true }).fill("418");
    await page.getByRole("button", { name: "Show", exact: true }).click();
    await page.waitForURL(/\?status=418$/);
    await see(page.getByText("No events match the filters."));
    await page.getByRole("button", { name: "Clear filters" }).click();
    await seeIds(page, [id]);
    await choose(page, "Event type", "Another type …");
    await page.getByLabel("Event type, exactly").fill("order.shipped");
    await page.keyboard.press("Enter");
    await page.waitForURL(/\?type=order.shipped$/);
    await see(page.getByText("No events match the filters."));
    expect(await chosen(page, "Event type")).toBe("order.shipped");
  });

  test.each(["desktop", "phone"] as const)(
    "says what of its address it does not apply, and replays nothing until that is removed, on a %s",
    async (size) => {
      const account = await openAccount(server.url);
      await account.setWebhooks({ webhook_url: hook, name: "Orders" });
      const id = await account.ingest({ answer: 404 });
      const page = await openEvents(account, { size }, "?state=bogus&from=banana&type=");
      await seeIds(page, [id]);
      await see(page.getByText("This part of the address is not applied: state=bogus, from=banana."));
      const replay = page.getByRole("button", { name: /^Replay / });
      expect(await replay.count()).toBe(0);
      await browser.inspect(page, "events-not-applied");
      await page.getByRole("link", { name: "Remove it" }).click();
      await see(replay);
      expect(await page.getByText("not applied").count()).toBe(0);
      expect(new URL(page.url()).search).toBe("");
    },
  );

  test("says how far a search looked, and goes on from there", async () => {
    const account = await openAccount(server.url);
    const [early, late] = [await account.ingest({ note: "needle" }), await account.ingest({ note: "needle" })];
    const page = await openEvents(account);
    await seeIds(page, [late, early]);
    // As of a history that is too long for one search.
    const { events } = await account.get<{ events: { ingestionTimestamp: string }[] }>("/v1/events");
    const searchedTo = events[1]?.ingestionTimestamp ?? "";
    await page.route("**/v1/events?*q=needle*", async (route) => {
      if (route.request().url().includes("&to=")) return route.fallback();
      const response = await route.fetch();
      const json = (await response.json()) as { events: object[] };
      await route.fulfill({ response, json: { ...json, events: json.events.slice(0, 1), total: 1, searchedTo } });
    });
    await search(page, "needle");
    await seeIds(page, [late]);
    await see(page.getByText(`1 delivery found so far, searched back to ${searchedTo.slice(0, 10)}`));
    await browser.inspect(page, "events-searched");
    await page.getByRole("link", { name: "Search further" }).click();
    await page.waitForURL(/until=/);
    await seeIds(page, [early]);

    await page.unroute("**/v1/events?*q=needle*");
    await page.route("**/v1/events?*q=straw*", (route) =>
      route.fulfill({ json: { events: [], total: 0, totalIsExact: false, searchedTo } }),
    );
    await search(page, "straw");
    await see(page.getByText(`Nothing found as far back as ${searchedTo.slice(0, 10)}`));
    await see(page.getByRole("link", { name: "Search further" }));
  });

  test("lists what is typed as soon as one turns to something else, so that nothing else is replayed", async () => {
    const account = await openAccount(server.url);
    await account.setWebhooks({ webhook_url: hook, name: "Shop" });
    const [ada] = await account.ingestAll([
      { customer: "ada", answer: 404 },
      { customer: "bob", answer: 404 },
    ]);
    const page = await openEvents(account, {}, "?state=failed");
    const both = page.getByRole("button", { name: "Replay these 2" });
    await see(both);
    await page.keyboard.press("/");
    await page.keyboard.type("ada");
    expect(await both.isDisabled()).toBe(true);
    await both.click({ force: true });
    await page.waitForURL(/q=ada$/);
    await seeIds(page, [ada ?? ""]);
    await see(page.getByRole("button", { name: "Replay this one" }));
    expect(await account.get("/v1/events/replays")).toMatchObject({ total: 0 });

    // Of a whole id, the list has the one event, and the page stays.
    await page.getByRole("searchbox").fill(`log: ${ada}`);
    await page.keyboard.press("Tab");
    await page.waitForURL((url) => url.searchParams.get("q") === ada);
    await seeIds(page, [ada ?? ""]);
    // What is typed goes with the page.
    await page.getByRole("searchbox").fill("carol");
    await page.goBack();
    await page.waitForURL(/q=ada$/);
    await page.getByRole("searchbox").fill(`${ada}`);
    await page.keyboard.press("Enter");
    await page.waitForURL(`${server.url}/events/${ada}`);
  });

  test("takes a range of time, in the user's own time", async () => {
    const account = await openAccount(server.url);
    await account.setWebhooks({ webhook_url: hook, name: "Shop" });
    const id = await account.ingest({ type: "user.created" });
    const page = await openEvents(account, { size: "phone" });
    await page.getByRole("button", { name: "Filters" }).click();
    await choose(page, "Time", "Custom range");
    await page.getByRole("button", { name: "Show", exact: true }).click();
    await see(page.getByText("Enter a start or an end."));
    await page.getByLabel("From").fill("2026-01-02 01:00 PM");
    const forms = "10m (ago), 10:50 (today) or YYYY-MM-DD hh:mm[:ss]";
    await see(page.getByText(`Write it as ${forms}.`), page.getByText(`${forms}, UTC`));
    await page.getByLabel("From").fill("");
    await page.getByLabel("To", { exact: true }).fill("10 minutes");
    await page.getByRole("button", { name: "Show", exact: true }).click();
    await see(page.getByText(`Write it as ${forms}.`), page.getByText(`${forms}, UTC`));
    await page.getByLabel("From").fill("10m");
    await page.getByLabel("To", { exact: true }).fill("");
    await page.getByRole("button", { name: "Show", exact: true }).click();
    await page.waitForURL(/\?from=20/);
    await seeIds(page, [id]);
    await page.getByLabel("From").fill("2026-01-02 00:00");
    await page.getByLabel("To", { exact: true }).fill("2026-01-01 00:00");
    await page.getByRole("button", { name: "Show", exact: true }).click();
    await see(page.getByText("The range starts after it ends."));
    await browser.inspect(page, "events-range-wrong");

    await page.getByLabel("To", { exact: true }).fill("2026-01-02 00:01");
    await page.getByRole("button", { name: "Show", exact: true }).click();
    await page.waitForURL((url) => url.searchParams.get("to")?.endsWith(":01:59.999Z") === true);
    await page.reload();
    await see(page.getByText("No events match the filters."));
    // Types are suggested whether or not the list shows them.
    await page.locator("option", { hasText: "user.created" }).waitFor({ state: "attached" });
    await openFilters(page, "phone");
    await page.getByLabel("To", { exact: true }).fill("");
    await page.getByRole("button", { name: "Show", exact: true }).click();
    await page.waitForURL((url) => url.searchParams.has("from") && !url.searchParams.has("to"));
    await seeIds(page, [id]);
    await page.reload();
    await seeIds(page, [id]);
    await page.getByRole("button", { name: "Filters" }).click();
    expect(await page.getByLabel("From").inputValue()).toBe("2026-01-02 00:00");
  });

  test("finds a part of an id, opens a whole one wherever it stands in what is pasted, and says when there is none", async () => {
    const account = await openAccount(server.url);
    const [first = "", second = ""] = await account.ingestAll([{ n: 1 }, { n: 2 }]);
    const strange = await (await openAccount(server.url)).ingest({});
    const page = await openEvents(account, { provoked: [/^404: .*\/v1\/events\/evt_/] });
    await seeIds(page, [second, first]);
    const field = page.getByRole("searchbox", { name: "Search payloads and ids" });
    await page.keyboard.press("/");
    await see(focused(field));
    await page.keyboard.type(first.slice(-4));
    await page.keyboard.press("Enter");
    await page.waitForURL(`${server.url}/events?q=${first.slice(-4)}`);
    await seeIds(page, [first]);

    await field.fill(strange);
    await page.keyboard.press("Enter");
    await see(page.getByText("The account has no event with this id."));
    await browser.inspect(page, "events-unknown-id");
    await page.keyboard.press("Escape");
    expect(await focused(field).count()).toBe(0);
    expect(await field.inputValue()).toBe(first.slice(-4));
    expect(new URL(page.url()).search).toBe(`?q=${first.slice(-4)}`);
    await page.keyboard.press("/");
    await field.fill("x".repeat(201));
    await page.keyboard.press("Enter");
    await see(page.getByText("Search for at most 200 characters."));
    await field.fill("");
    await page.waitForURL(`${server.url}/events`);
    await field.fill(`  {"eventId":"${first.toUpperCase().replace("EVT", "evt")}","tenantId":…`);
    await page.keyboard.press("Enter");
    await page.waitForURL(`${server.url}/events/${first}`);
  });
});
