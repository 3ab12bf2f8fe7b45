import { afterEach, describe, expect, test } from "bun:test";
import { until } from "../support/api-server.ts";
import { noBrowser, openBrowser } from "./browser.ts";
import { choose, eventLists, focused, openFilters, row, search, see, seeIds } from "./event-list.ts";
import { startExecutable } from "./executable.ts";
import { startObedientReceiver } from "./obedient-receiver.ts";
import { type Account, openAccount } from "./signed-in.ts";
import { ask, hold, press, pressRefused, seeText, signIn } from "./visitor.ts";

const server = await startExecutable({ POSTRIDER_RETRY_SCHEDULE: "1h" });
const browser = openBrowser(server.url);
const openEvents = eventLists(browser, server.url);
const receiver = startObedientReceiver();
const hook = `${receiver.url}/orders`;
const other = `${receiver.url}/books`;

// What one test has it answer must not be what the others wait for.
afterEach(() => receiver.answerAlways(null));

describe.skipIf(noBrowser !== null)("what is listed is replayed", () => {
  test.each(["desktop", "phone"] as const)("exactly, with its progress and its events, on a %s", async (size) => {
    const account = await openShop();
    const [, paid, refund] = await account.ingestAll([
      { type: "order.paid", answer: 500 },
      { type: "order.paid", answer: 404 },
      { type: "refund", answer: 404 },
      { type: "refund" },
    ]);
    const page = await openEvents(account, { size }, "?state=failed");
    await seeIds(page, [refund ?? "", paid ?? ""]);
    await see(page.getByRole("button", { name: "Replay these 2" }));
    await openFilters(page, size);
    await choose(page, "Event type", "order.paid");
    await choose(page, "Webhook", "Shop");
    await seeIds(page, [paid ?? ""]);
    await press(page, "Replay this one");
    const progress = page.getByRole("region", { name: "Replay" });
    await see(progress.getByText("All failed"), progress.getByText(/Failed events: order.paid · Shop/));
    await browser.inspect(page, "events-replayed-failed");

    receiver.answerAlways(200);
    await press(page, "Replay this one");
    await see(progress.getByText("Completed"), progress.getByText("1 delivered"));
    // The list of what failed is read again.
    await see(page.getByText("No events match the filters."));
    expect(await page.getByRole("button", { name: /^Replay/ }).count()).toBe(0);
    receiver.answerAlways(null);
    expect(await replaysOf(account)).toMatchObject([
      { kind: "failed", selected: 1, queued: 1, delivered: 1, filter: { type: "order.paid" } },
      { kind: "failed", selected: 1, queued: 1, failed: 1, filter: { type: "order.paid" } },
    ]);
    await progress.getByRole("link", { name: "See its events" }).click();
    await page.waitForURL(/\?replay=rpl_\w+$/);
    await seeIds(page, [paid ?? ""]);
    await see(row(page, /Delivered · .+ms · 3 tries/));
    await progress.getByRole("button", { name: "Dismiss the replay" }).click();
    expect(await progress.count()).toBe(0);
  });

  test("of many after a question that names the number and the target, and is cancelled", async () => {
    const account = await openShop();
    receiver.answerAlways(404);
    await account.ingestAll(Array.from({ length: 120 }, (_, n) => ({ type: "order.paid", n })));
    const page = await openEvents(account, { provoked: [/^503: .*\/rpl_/] }, "?state=failed&type=order.paid");
    await untilListed(account, "FAILED", 120);
    await page.reload();
    await press(page, "Replay these 120 …");
    const dialog = page.getByRole("dialog", { name: "Replay 120 events?" });
    await see(dialog.getByText(/^120 events will be delivered again to Shop\.$/));
    await see(dialog.getByText("Failed · order.paid · Any time"), dialog.getByText("120 deliveries"));
    await browser.inspect(page, "events-replay-asks");
    await press(dialog, "Not now");
    expect(await replaysOf(account)).toEqual([]);

    // They wait for an hour, so that there is something to cancel.
    receiver.answerAlways(503);
    await press(page, "Replay these 120 …");
    await press(dialog, "Replay 120 events");
    const progress = page.getByRole("region", { name: "Replay" });
    await see(progress.getByText("120 waiting"));
    await browser.inspect(page, "events-replaying");
    await progress.getByRole("button", { name: /^Cancel / }).click();
    await pressRefused(page, "**/v1/events/replays/*", "Cancel the replay");
    await press(page, "Cancel the replay");
    await see(progress.getByText("Cancelled"), progress.getByText("120 returned"));
    receiver.answerAlways(null);
    expect(await replaysOf(account)).toMatchObject([{ status: "cancelled", selected: 120, returned: 120 }]);
    expect(await account.get("/v1/events/state/FAILED?size=1")).toMatchObject({ total: 120 });
  });

  test("one by one when it was searched for, and not at all when there is nothing", async () => {
    const account = await openShop("Books");
    const [first = "", bob = "", last = ""] = await account.ingestAll(
      ["ada@b.c", "bob", "ada@b.c"].map((customer) => ({ customer, answer: 404 })),
    );
    await untilListed(account, "FAILED", 6);
    const page = await openEvents(account, { provoked: [/replays\/single/] });
    await search(page, "ada@b.c");
    await seeIds(page, [last, last, first, first]);
    receiver.answerAlways(200);
    await press(page, "Replay these 4");
    const progress = page.getByRole("region", { name: "Replay" });
    await see(progress.getByText("4 delivered"), progress.getByText(/Listed deliveries: “ada@b.c”/));
    await see(progress.getByText("2 events selected, 4 deliveries queued"));
    receiver.answerAlways(null);
    const one = { kind: "single", queued: 1 };
    const toEach = [other, hook].map((webhook) => ({ ...one, filter: { webhook } }));
    expect(await replaysOf(account)).toMatchObject([...toEach, ...toEach]);
    expect(await account.get(`/v1/events/${bob}`)).toMatchObject([{ attempts: 1 }, { attempts: 1 }]);

    await see(focused(page.getByRole("button", { name: "Replay these 4 …" })));
    await press(page, "Replay these 4 …");
    const dialog = page.getByRole("dialog", { name: "Replay 4 deliveries?" });
    await see(dialog.getByText("All of them were acknowledged already, and Shop and Books would get them again."));
    await browser.inspect(page, "events-replay-again");
    await press(dialog, "Not now");
    expect(await replaysOf(account)).toHaveLength(4);

    // What was accepted before one was not is not replayed again by trying again.
    let asked = 0;
    await page.route("**/v1/events/replays/single", (route) => {
      asked += 1;
      return asked === 3 ? route.abort() : route.continue();
    });
    await press(page, "Replay these 4 …");
    await press(dialog, "Replay 4 deliveries");
    const rest = page.getByRole("dialog", { name: "Replay 2 deliveries?" });
    await see(rest.getByText("The server cannot be reached."));
    await press(rest, "Replay 2 deliveries");
    await rest.waitFor({ state: "detached" });
    await see(progress.getByText("2 events selected, 4 deliveries queued"));
    expect(await replaysOf(account)).toMatchObject([...toEach, ...toEach, ...toEach, ...toEach]);

    await search(page, "carol");
    await see(page.getByText("No events match the filters."));
    expect(await page.getByRole("button", { name: /^Replay/ }).count()).toBe(0);
  });

  test("after a question that names the number, where more failed since than is listed", async () => {
    const account = await openShop();
    await account.ingestAll([{}, {}, {}]);
    await untilListed(account, "DELIVERED", 3);
    const failed = await account.ingest({ answer: 404 });
    const page = await openEvents(account, {}, "?state=failed");
    await seeIds(page, [failed]);
    receiver.answerAlways(404);
    await account.post("/v1/events/replays/all", { replayGroupId: "again" });
    await untilListed(account, "FAILED", 4);
    receiver.answerAlways(null);
    await press(page, "Replay this one");
    const dialog = page.getByRole("dialog", { name: "Replay 4 events?" });
    await see(dialog.getByText(/^4 events will be delivered again to Shop\.$/));
    await press(dialog, "Not now");
    expect(await replaysOf(account)).toHaveLength(1);

    // A list that is read again says what it holds by now.
    await account.setWebhooks({ webhook_url: hook, name: "Renamed" });
    await see(page.getByText("1–4 of 4 deliveries"), page.getByRole("button", { name: "Replay these 4" }));
  });

  test("after a question, too, where an event is listed for two webhooks and another has failed since", async () => {
    const account = await openShop("Books");
    const twice = await account.ingest({ answer: 404 });
    await untilListed(account, "FAILED", 2);
    await account.setWebhooks({ webhook_url: hook, name: "Shop" });
    await account.ingest({});
    const once = await account.ingest({ answer: 404 });
    await untilListed(account, "FAILED", 3);
    await untilListed(account, "DELIVERED", 1);
    const page = await openEvents(account, {}, "?state=failed");
    await seeIds(page, [once, twice, twice]);
    receiver.answerAlways(404);
    await account.post("/v1/events/replays/all", { replayGroupId: "again" });
    await untilListed(account, "FAILED", 4);
    receiver.answerAlways(null);
    await press(page, "Replay these 3");
    await see(page.getByRole("dialog", { name: "Replay 3 events?" }));
    expect(await replaysOf(account)).toHaveLength(1);
  });

  test("of one's own account alone: whoever signs in next in the tab sees nothing of the one before", async () => {
    const [before, next] = [await openShop(), await openShop()];
    await before.ingestAll([{ answer: 404 }, { answer: 404 }]);
    await next.ingest({ type: "refund", answer: 404 });
    await untilListed(before, "FAILED", 2);
    const page = await openEvents(before, {}, "?state=failed");
    receiver.answerAlways(503);
    await press(page, "Replay these 2");
    const progress = page.getByRole("region", { name: "Replay" });
    await see(progress.getByText("2 waiting"));
    receiver.answerAlways(null);
    await press(page, "Sign out");
    await seeText(page, "You are signed out.");

    const list = await hold(page, "**/v1/events/state/**");
    await signIn(page, next.id, next.password);
    await list.untilAsked;
    expect(await page.locator("a.event-row").count()).toBe(0);
    await list.answer();
    await see(row(page, "refund"), page.getByText("1–1 of 1 delivery"));
    expect(await progress.count()).toBe(0);
    await see(page.locator("button[aria-busy=false]", { hasText: "Replay this one" }));
  });

  test("of everything says that it includes what was delivered", async () => {
    const account = await openShop();
    await account.ingest({});
    await untilListed(account, "DELIVERED", 1);
    const page = await openEvents(account);
    await press(page, "Replay this one …");
    const dialog = page.getByRole("dialog", { name: "Replay 1 event?" });
    await see(
      dialog.getByText(/^1 event will be delivered again to Shop\. That includes what was delivered already\.$/),
    );
    await press(dialog, "Not now");
    expect(await replaysOf(account)).toEqual([]);
  });

  test("nowhere without a webhook, and it says so", async () => {
    const account = await openAccount(server.url);
    await account.ingest({});
    const page = await openEvents(account, { size: "phone" });
    await press(page, "Replay this one …");
    await see(page.getByText("No webhook is registered, so a replay has nowhere to go."));
    expect(await page.getByRole("button", { name: /^Replay \d/ }).count()).toBe(0);
    await browser.inspect(page, "events-replay-nowhere");
    await page.getByRole("link", { name: "Register a webhook first" }).click();
    await page.waitForURL(`${server.url}/webhooks`);
  });
});

/** @param second the name of another webhook; a free account has one */
async function openShop(second?: string): Promise<Account> {
  const account = await openAccount(server.url);
  const tier = `${server.url}/operator/tenants/${account.id}/tier`;
  if (second) await ask(tier, "PUT", server.operatorToken(), { tier: "enterprise" });
  const more = second ? [{ webhook_url: other, name: second }] : [];
  await account.setWebhooks({ webhook_url: hook, name: "Shop" }, ...more);
  return account;
}

const replaysOf = async (account: Account) => (await account.get<{ replays: object[] }>("/v1/events/replays")).replays;

/** The receiver has them before they are settled. */
const untilListed = (account: Account, state: string, n: number) =>
  until(
    () => account.get<{ total: number }>(`/v1/events/state/${state}?size=1`),
    ({ total }) => total >= n,
  );
