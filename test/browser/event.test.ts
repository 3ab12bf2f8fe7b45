import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import type { Locator, Page } from "playwright-core";
import { parseEventId } from "../../src/lib/id.ts";
import { type Look, noBrowser, openBrowser } from "./browser.ts";
import { startExecutable } from "./executable.ts";
import { startObedientReceiver } from "./obedient-receiver.ts";
import { type Account, openAccount } from "./signed-in.ts";

// One retry at once, and one that no test sees.
const server = await startExecutable({
  POSTRIDER_RETRY_SCHEDULE: "10ms,1h",
  POSTRIDER_RETENTION: "30d",
  POSTRIDER_RETENTION_PAYLOADS: "7d",
});
const browser = openBrowser(server.url);
const receiver = startObedientReceiver();
const hook = `${receiver.url}/orders?source=postrider`;
/** What a query holds may be a secret. */
const shownHook = `${receiver.url}/orders?…`;

describe.skipIf(noBrowser !== null)("an event", () => {
  test.each(["desktop", "phone"] as const)(
    "that waits shows each try and when the next one is, on a %s",
    async (size) => {
      const account = await openAccount(server.url);
      await account.setWebhooks({ webhook_url: hook });
      const id = await account.ingest({ event_type: "order.created", answer: 503 });
      const page = await openEvent(account, id, { size });
      await see(
        page.getByRole("heading", { name: id }),
        page.getByRole("heading", { name: shownHook }),
        page.getByText("The receiver failed with 503. It is retried automatically."),
        page.getByText(/^Next attempt in \d+ (min|h)/),
        page.getByText(/Accepted \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}/),
        page.getByText(/ 43 B$/),
      );
      const tries = page.getByRole("listitem");
      expect(await page.locator(".attempt").count()).toBe(2);
      await see(tries.filter({ hasText: "503" }).first(), tries.filter({ hasText: "upstream down" }).last());
      await page.locator(".attempt").first().click();
      await see(
        page.getByText(/^upstream down\n {2}by request \d+$/).first(),
        page.getByText("Answered by 127.0.0.1").first(),
        page
          .getByLabel("Headers of the response")
          .filter({ hasText: /X-Request: \d+/ })
          .first(),
        tries.filter({ hasText: "Retry-After: 0" }).first(),
      );
      await browser.inspect(page, "event-answer");
    },
  );

  test("of a long type fits on a phone", async () => {
    const account = await openAccount(server.url);
    const type = "com.github.pull-request.review-requested.synchronize.v2.eu-central-1";
    const id = await account.ingest({ event_type: type });
    const page = await openEvent(account, id, { size: "phone" });
    await see(page.locator("strong").filter({ hasText: type }));
    await browser.inspect(page, "event-long-type");
  });

  test("that waits says why it got no answer", async () => {
    const account = await openAccount(server.url);
    // It speaks no TLS.
    await account.setWebhooks({ webhook_url: hook.replace("http:", "https:") });
    const id = await account.ingest({});
    const page = await openEvent(account, id);
    const why = /^TLS connection to the webhook failed \(.+\)$/;
    await see(page.locator(".record-why").getByText(why), page.locator(".attempt-answer", { hasText: why }).first());
    await browser.inspect(page, "event-tls");
  });

  test.each(["desktop", "phone"] as const)(
    "that failed says why and what to press, and is delivered while one watches, on a %s",
    async (size) => {
      const account = await openAccount(server.url);
      await account.setWebhooks({ webhook_url: hook });
      const id = await account.ingest({ answer: 404 });
      const page = await openEvent(account, id, { size });
      await see(
        page.getByText("Failed", { exact: true }),
        page.getByText("The receiver refused the event with 404."),
        page.getByText("Fix the receiver or the webhook's URL, then replay."),
      );
      await browser.inspect(page, "event-failed");

      receiver.answerAlways(200);
      await page.getByRole("button", { name: "Replay", exact: true }).click();
      await see(
        page.getByText(/^Replaying evt_\S+ as dashboard-\d{8}-\d{6}\./),
        page.getByText("Delivered", { exact: true }),
      );
      receiver.answerAlways(null);
      await see(
        page.getByText("First delivery"),
        page.locator("summary", { hasText: /^Replay dashboard-\d{8}-\d{6}/ }),
      );
      expect(await page.getByText("The receiver refused the event with 404.").count()).toBe(0);
      expect(await page.getByRole("link", { name: "See the replay" }).getAttribute("href")).toMatch(
        /^\/replays\?id=rpl_/,
      );
      expect(await account.get(`/v1/events/${id}`)).toMatchObject([{ state: "DELIVERED", attempts: 2 }]);
      await browser.inspect(page, "event-replayed");
    },
  );

  test("that is on its way, and is replayed on its way, changes as the receiver answers", async () => {
    const account = await openAccount(server.url);
    await account.setWebhooks({ webhook_url: hook });
    const id = await account.ingest({ answer: "later" });
    const page = await openEvent(account, id);
    await see(
      page.getByText("Live", { exact: true }),
      page.getByText("Not attempted yet"),
      page.getByText("Next attempt now"),
    );
    await page.getByRole("button", { name: "Replay", exact: true }).click();
    await see(page.getByText(/^Replay group dashboard-/), page.getByText("Waiting", { exact: true }));
    receiver.answerNow();
    await see(page.getByText("Delivered", { exact: true }), page.getByText("First delivery"));
    expect(await page.locator(".attempt-status.good").count()).toBe(2);
  });

  test("that is held back says so, and goes once the one before it has ended", async () => {
    const account = await openAccount(server.url);
    await account.setWebhooks({ webhook_url: hook, ordered: true });
    const eventId = await account.ingest({ answer: 503 }, { ordering_key: "x" });
    const id = await account.ingest({}, { ordering_key: "x" });
    const page = await openEvent(account, id);
    await see(page.getByText("Waiting", { exact: true }), page.getByText(/^Held back until the delivery before it/));
    expect(await page.getByText(/Next attempt/).count()).toBe(0);
    await browser.inspect(page, "event-held-back");
    receiver.answerAlways(200);
    await account.post("/v1/events/replays/single", { eventId, replayGroupId: "again" });
    await see(page.getByText("Delivered", { exact: true }));
    receiver.answerAlways(null);
    expect(await page.getByText(/^Held back/).count()).toBe(0);
  });

  test("that found no webhook is replayed to one that is registered now", async () => {
    const account = await openAccount(server.url);
    const id = await account.ingest({});
    const page = await openEvent(account, id);
    await see(
      page.getByRole("heading", { name: "No webhook" }),
      page.getByText("Register a webhook, then replay the event to it."),
      page.getByRole("link", { name: "Go to webhooks" }),
    );
    await browser.inspect(page, "event-nowhere");
    await account.setWebhooks({ webhook_url: hook });
    await page.keyboard.press("r");
    await see(page.getByRole("heading", { name: shownHook }), page.getByText("Delivered", { exact: true }));
  });

  test("that waits says so no longer when its webhook is removed, nor does its row in the list", async () => {
    const account = await openAccount(server.url);
    await account.setWebhooks({ webhook_url: hook });
    const id = await account.ingest({ answer: 503 });
    const page = await openEvent(account, id);
    await see(page.getByText(/^Next attempt in \d+ (min|h)/));
    const list = await page.context().newPage();
    await list.goto(`${server.url}/events`);
    await see(list.getByText(/HTTP 503 · .*next in/), list.getByText("Live", { exact: true }));
    await account.setWebhooks();
    await see(page.getByText("Failed", { exact: true }), list.getByText(/^Webhook removed · 2 tries/));
  });

  test("whose webhook is gone says so, and keeps the tries to it when a replay replaces it", async () => {
    const account = await openAccount(server.url);
    await account.setWebhooks({ webhook_url: hook });
    const id = await account.ingest({ answer: 404 });
    await receiver.waitFor((request) => request.headers.get("service-event-id") === id);
    const other = `${receiver.url}/other`;
    const page = await openEvent(account, id);
    await see(page.getByText("Failed", { exact: true }));
    await account.setWebhooks({ webhook_url: other });
    await page.reload();
    await see(page.getByText("No longer registered"));
    await page.getByRole("button", { name: "Replay", exact: true }).click();
    await see(
      page.getByRole("region", { name: other }),
      page.getByText("A replay replaced this delivery with deliveries to the registered webhooks."),
      page.getByRole("region", { name: shownHook }).getByText("404"),
    );
  });

  test.each(["desktop", "phone"] as const)(
    "whose payload was erased says so, and is left out of replays, on a %s",
    async (size) => {
      const account = await openAccount(server.url);
      await account.setWebhooks({ webhook_url: hook });
      const [id = "", ...others] = await account.ingestAll([{ answer: 404 }, { answer: 404 }, { answer: 404 }]);
      for (const each of [id, ...others])
        await receiver.waitFor(({ headers }) => headers.get("service-event-id") === each);
      await server.restart((database) => erasePayloads(database, [id, others[0] ?? ""]));

      const page = await openEvent(account, id, { size });
      const why = "The payload was erased as it had become old. Without it the event cannot be replayed.";
      await see(page.getByText(why), page.getByText("The receiver refused the event with 404."));
      const replay = page.getByRole("button", { name: "Replay", exact: true });
      expect(await replay.isDisabled()).toBe(true);
      expect(await replay.getAttribute("aria-describedby")).toBe(await page.getByText(why).getAttribute("id"));
      expect(await page.getByRole("button", { name: /as curl/ }).count()).toBe(0);
      expect(await page.getByText(/then replay/).count()).toBe(0);
      await browser.inspect(page, "event-erased");

      await page.goto(`${server.url}/events?state=failed`);
      await see(page.getByText("payload erased").first());
      await see(page.getByText("Events are kept for 30 days, their payloads for 7 days."));
      await page.getByRole("button", { name: "Replay these 3 …" }).click();
      const dialog = page.getByRole("dialog");
      await see(dialog.getByText("1 of 3 can be replayed; 2 payloads were erased."));
      await see(dialog.getByRole("button", { name: "Replay 1 event" }));
      await browser.inspect(page, "events-erased");

      await page.goto(`${server.url}/replays?kind=all`);
      await see(page.getByText("1 of 3 can be replayed; 2 payloads were erased."));
      await page.getByRole("button", { name: "Replay 1 event" }).click();
      await see(page.getByText("2 payloads erased"), page.getByText("2 skipped"));
      await browser.inspect(page, "replays-erased");
    },
  );

  test("shows the payload to the byte, as text", async () => {
    const payload =
      '{"id": 12345678901234567890,\t"price":1.0,"a":1,"a":2,"__proto__":{"admin":true},' +
      '"html":"</script><img src=x onerror=alert(1)>","é":"\\u00e9 \u{1f600}","e":-0.0E+1}';
    const account = await openAccount(server.url);
    const id = await account.ingest(payload);
    const page = await openEvent(account, id, { permissions: ["clipboard-read", "clipboard-write"] });
    const shown = page.getByRole("region", { name: "Payload, as submitted" }).locator("pre");
    const formatted = await shown.textContent();
    for (const line of [
      '  "id": 12345678901234567890,',
      '  "price": 1.0,',
      '  "a": 1,\n  "a": 2,',
      '    "admin": true\n',
    ])
      expect(formatted).toContain(line);
    await browser.inspect(page, "event-payload");
    await page.getByRole("button", { name: "As sent", exact: true }).click();
    await see(page.locator("pre.as-sent"));
    expect(await shown.textContent()).toBe(payload);
    expect(await page.locator("img").count()).toBe(0);
    await page.getByRole("button", { name: "Copy the payload as sent" }).click();
    await see(page.getByRole("button", { name: "Copied the payload as sent" }));
    expect(await clipboardOf(page)).toBe(payload);
    await page.getByRole("button", { name: "Copy id" }).click();
    await see(page.getByRole("button", { name: "Copied id" }));
    expect(await clipboardOf(page)).toBe(id);
  });

  test("shows what would turn text round or hide in it, and says where an answer was cut", async () => {
    const account = await openAccount(server.url);
    await account.setWebhooks({ webhook_url: hook });
    receiver.answerAlways(404, `\u202e\u0007${"x".repeat(5000)}`);
    const payload = '{"to":"\u202egpj.exe","bell":"\u200b"}';
    const id = await account.ingest(payload);
    const page = await openEvent(account, id, {
      zone: "Asia/Kathmandu",
      permissions: ["clipboard-read", "clipboard-write"],
    });
    const shown = page.getByRole("region", { name: "Payload, as submitted" }).locator("pre");
    expect(await shown.textContent()).toContain('"to": "⟨U+202E⟩gpj.exe"');
    await page.getByRole("button", { name: "As sent", exact: true }).click();
    await see(shown.filter({ hasText: '{"to":"⟨U+202E⟩gpj.exe","bell":"⟨U+200B⟩"}' }));
    await page.getByRole("button", { name: "Copy the payload as sent" }).click();
    await see(page.getByRole("button", { name: "Copied the payload as sent" }));
    expect(await clipboardOf(page)).toBe(payload);
    await page.locator(".attempt").click();
    await see(
      page.locator(".answer-body").filter({ hasText: /^⟨U\+202E⟩␇x/ }),
      page.getByText("Cut here: only the first 4 KiB of a response are kept."),
    );
    receiver.answerAlways(null);

    // And times: in the zone that is named, or in UTC, also after a reload.
    const accepted = page.getByText(/^Accepted /);
    await see(accepted.filter({ hasText: /UTC\+5:45/ }));
    await page.getByRole("button", { name: "Show times in UTC" }).click();
    await see(accepted.filter({ hasText: /\.\d{3} UTC(?!\+)/ }));
    expect(await page.locator(".attempt time").getAttribute("title")).toMatch(/ UTC$/);
    await page.reload();
    await see(accepted.filter({ hasText: /\.\d{3} UTC(?!\+)/ }));
    await page.keyboard.press("u");
    await see(accepted.filter({ hasText: /UTC\+5:45/ }));
    await page.goto(server.url);
    await see(page.getByText(/^since \d\d:45, with replays, UTC\+5:45$/).first());
  });

  test("with a quarter of a megabyte is there at once, and all of it on request", async () => {
    const account = await openAccount(server.url);
    const items = Array.from({ length: 5000 }, (_, n) => ({ sku: `sku-${n}`, price: n, new: n % 2 === 0 }));
    const payload = JSON.stringify({ items, last: "the very end" });
    const id = await account.ingest(payload);
    const page = await openEvent(account, id);
    const shown = page.getByRole("region", { name: "Payload, as submitted" }).locator("pre");
    await see(page.getByText("Only the beginning is shown."));
    expect(await shown.textContent()).not.toContain("the very end");
    const before = Number(await page.evaluate("performance.now()"));
    await page.getByRole("button", { name: /^Show all \d+ KB$/ }).click();
    await see(shown.filter({ hasText: "the very end" }));
    expect(Number(await page.evaluate("performance.now()")) - before).toBeLessThan(2000);
    await page.getByRole("button", { name: "As sent", exact: true }).click();
    await see(page.locator("pre.as-sent"));
    expect(await shown.textContent()).toBe(payload);

    // Opened by its address, it leads to all events.
    await page.keyboard.press("Escape");
    await page.waitForURL(`${server.url}/events`);
  });

  test.skipIf(Bun.which("curl") === null)("is copied as a curl command that makes the same delivery", async () => {
    const account = await openAccount(server.url);
    await account.setWebhooks({ webhook_url: hook });
    const id = await account.ingest(`{"it's": 12345678901234567890, "cost": "$HOME \`id\` \\\\ !", "é": "\u{1f600}"}`);
    const first = await receiver.waitFor((request) => request.headers.get("service-event-id") === id);
    const page = await openEvent(account, id, { permissions: ["clipboard-read", "clipboard-write"] });
    await page.getByRole("button", { name: "Copy as curl" }).click();
    await see(page.getByRole("button", { name: "Copied as curl" }));
    const copied = await clipboardOf(page);
    expect(await page.content()).not.toContain("source=postrider");
    expect(copied).not.toContain("source=postrider");
    await see(page.getByText(/^Copied for 127\.0\.0\.1:\d+ without the URL's query/));
    const command = copied.replace("QUERY", "source=postrider");
    expect(await Bun.spawn(["sh", "-c", command], { stdout: "ignore", stderr: "ignore" }).exited).toBe(0);
    const again = await receiver.waitFor(
      (request) => request.headers.get("service-event-id") === id && request.nth > first.nth,
    );
    expect(again.path).toBe("/orders?source=postrider");
    expect(again.body.equals(first.body)).toBe(true);
    for (const name of ["content-type", "service-signature", "service-key-id", "webhook-id"])
      expect(again.headers.get(name)).toBe(first.headers.get(name));
  });

  test("that the account does not have is not just a blank page", async () => {
    const account = await openAccount(server.url);
    const page = await openEvent(account, "evt_01jc8x2m4e7n9q3s5v7y9a1c3e", { size: "phone", provoked: [/^404: /] });
    await see(page.getByText("This account has no event with the id evt_01jc8x2m4e7n9q3s5v7y9a1c3e."));
    await browser.inspect(page, "event-unknown");
    await page.getByRole("link", { name: "See all events" }).click();
    await see(page.getByRole("heading", { name: "Events", exact: true }));
  });

  test("leads back to the list it was opened from, also after a reload", async () => {
    const account = await openAccount(server.url);
    const ids = await account.ingestAll(Array.from({ length: 60 }, (_, n) => ({ n })));
    const page = await openEvent(account, "", {}, "/events?state=failed");
    const link = page.locator(`a.event-row[href="/events/${ids[20]}"]`);
    await link.scrollIntoViewIfNeeded();
    const scrollY = await page.evaluate<number>("scrollY");
    expect(scrollY).toBeGreaterThan(300);
    const box = await link.boundingBox();
    await link.click();
    await see(page.getByRole("heading", { name: ids[20] ?? "" }));
    expect(await page.evaluate<number>("scrollY")).toBe(0);
    await account.ingest({ came: "meanwhile" });
    const readAgain = page.waitForResponse(/\/v1\/events\/state\/FAILED\?page=0&size=50/);
    await page.getByRole("main").getByRole("link", { name: "Events" }).click();
    await (await readAgain).finished();
    await see(link.and(page.locator(":focus")));
    expect(new URL(page.url()).search).toBe("?state=failed");
    expect(await link.boundingBox()).toEqual(box);
    await see(page.getByRole("button", { name: "New events" }));
    expect(await page.locator("a.event-row").first().getAttribute("href")).toBe(`/events/${ids.at(-1)}`);

    await link.click();
    await see(page.getByRole("heading", { name: ids[20] ?? "" }));
    await page.reload();
    await see(page.getByRole("button", { name: "Replay", exact: true }));
    await page.keyboard.press("Escape");
    await page.waitForURL(`${server.url}/events?state=failed`);
    await see(page.getByRole("heading", { name: "Events", exact: true }));
  });
});

// ---------------------------------------------------------------- the user

async function openEvent(
  account: Account,
  id: string,
  look: Partial<Look> = {},
  path = `/events/${id}`,
): Promise<Page> {
  const page = await browser.page({ size: "desktop", ...look, provoked: look.provoked ?? [] });
  await account.signIn(page);
  await page.goto(server.url + path);
  return page;
}

async function see(...what: readonly Locator[]): Promise<void> {
  for (const one of what) await one.waitFor();
}

/** As retention does: it would take an hour. */
function erasePayloads(database: string, eventIds: readonly string[]): void {
  const client = new Database(database);
  const seqs = JSON.stringify(eventIds.map((eventId) => parseEventId(eventId)?.seq));
  client.run("update event set payload = x'', checksum = null where seq in (select value from json_each(?))", [seqs]);
  client.run("update tenant set payloads_erased_to = (select max(value) from json_each(?))", [seqs]);
  client.close();
}

const clipboardOf = (page: Page) => page.evaluate<string>("navigator.clipboard.readText()");
