import { afterAll, describe, expect, test } from "bun:test";
import type { Page } from "playwright-core";
import { until } from "../support/api-server.ts";
import { startReceiver } from "../support/receiver.ts";
import { noBrowser, openBrowser } from "./browser.ts";
import { startExecutable } from "./executable.ts";
import { openAccount } from "./signed-in.ts";
import { follow, press, seeText } from "./visitor.ts";

const server = await startExecutable();
const browser = openBrowser(server.url);

/** Answers with what is asked of each webhook's path, `/hook-1` and so on; 204 unless it is told otherwise. */
const answers = new Map<string, number>();
const receiver = startReceiver({ answer: ({ path }) => new Response(null, { status: answers.get(path) ?? 204 }) });
afterAll(() => receiver.stop());

const tooMany = /^429: .*\/v1\/events\/replays\//;

describe.skipIf(noBrowser !== null)("the replays' page", () => {
  test.each(["desktop", "phone"] as const)(
    "says what there is to do before anything is replayed, on a %s",
    async (size) => {
      const { page } = await open({ size });
      await seeText(page, "No replays yet.");
      await seeText(page, "No events have failed, so there is nothing to replay.");
      expect(await page.getByRole("button", { name: "Replay", exact: true }).isDisabled()).toBe(true);
      await browser.inspect(page, "replays-empty");
    },
  );

  test.each(["desktop", "phone"] as const)(
    "replays what failed: the number before, the progress, and the end, on a %s",
    async (size) => {
      const { page, account, answerWith, received } = await open({ size, path: "?kind=failed" });
      answerWith(404);
      await account.ingestAll(Array.from({ length: 12 }, (_, n) => ({ n })));
      await received(12);
      await press(page, "Replay 12 failed events");
      await page.locator(".state.failed").getByText("All failed", { exact: true }).waitFor();
      answerWith(204);
      await seeText(page, "Replay 12 failed events");
      await press(page, "Replay 12 failed events");
      await seeText(page, /^Completed$/);
      await seeText(page, "12 events selected, 12 deliveries queued");
      await seeText(page, "12 delivered");
      await page.getByRole("img", { name: "Of the deliveries of this replay: 12 delivered" }).waitFor();
      await seeText(page, "No events have failed");
      // Its button is off, and the focus is not lost.
      await page.locator("form.new-replay:focus").waitFor();
      const { events } = await account.get<{ events: { state: string; replayGroupId: string }[] }>("/v1/events");
      expect(new Set(events.map(({ state }) => state))).toEqual(new Set(["DELIVERED"]));
      expect(events[0]?.replayGroupId).toMatch(/^failed-\d{8}-\d{6}$/);
      await browser.inspect(page, "replays-completed");
    },
  );

  test("counts the events of a range of time as it is chosen, and keeps the choice in the URL", async () => {
    const { page, account } = await open({ size: "desktop" });
    await account.ingestAll([{ n: 1 }, { n: 2 }, { n: 3 }]);
    await page.getByRole("radio", { name: /^A time range/ }).check();
    await page.getByRole("button", { name: "24 h" }).click();
    await seeText(page, "Replay 3 events");
    await browser.inspect(page, "replays-range");
    await page.waitForURL(/kind=timeline&from=.*&to=/);
    await page.reload();
    await seeText(page, "Replay 3 events");

    await page.getByLabel("To, inclusive").fill("2020-01-01T00:00:00");
    await seeText(page, "The range starts after it ends.");
    await page.getByLabel("From").fill("2019-01-01T00:00:00");
    await seeText(page, "No events were accepted in this range.");
    await page.waitForURL(/from=2019-01-01T00/);
  });

  test("comes with a range by a link", async () => {
    const { page, account } = await open({ size: "phone", path: "?kind=all" });
    await account.ingest({ n: 1 });
    const now = new Date();
    const from = new Date(now.getTime() - 60_000).toISOString();
    await page.goto(`${server.url}/replays?kind=timeline&from=${from}&to=${now.toISOString()}`);
    await seeText(page, "Replay 1 event");
    expect(await page.getByRole("radio", { name: /^A time range/ }).isChecked()).toBe(true);
  });

  test("replays one event by its id, under a label of one's own", async () => {
    const { page, account } = await open({ size: "desktop" });
    const eventId = await account.ingest({ n: 1 });
    await page.goto(`${server.url}/replays?kind=single&event=${eventId}`);
    await page.getByLabel("Label").fill("after the outage");
    await press(page, "Replay this event");
    await page.getByText("after the outage", { exact: true }).waitFor();
    await seeText(page, "1 event selected, 1 delivery queued");
    await seeText(page, /^Completed$/);
    const replayed = await receiver.waitFor(
      ({ headers }) => headers.get("service-event-id") === eventId && headers.has("service-replay-group"),
    );
    expect(replayed.headers.get("service-replay-group")).toBe("after%20the%20outage");

    const { replays } = await account.get<{ replays: { id: string }[] }>("/v1/events/replays");
    await page.goto(`${server.url}/replays?id=${replays[0]?.id}`);
    const marked = page.locator(".replay.is-marked").filter({ hasText: "after the outage" });
    await marked.waitFor();
    expect((await marked.boundingBox())?.y).toBeWithin(0, 800);

    await page.goto(`${server.url}/replays?kind=single`);
    await page.getByLabel("Event id").fill("evt_nothing");
    await seeText(page, "This account has no event with this id.");
    await page.getByLabel("Event id").fill("");
    await seeText(page, "Enter an event id.");
  });

  test("takes the last hour by the server's clock where the viewer's is wrong", async () => {
    const { page } = await open({ size: "desktop" });
    await page.clock.setSystemTime(Date.now() - 2 * 3_600_000);
    await page.goto(`${server.url}/replays?kind=timeline`);
    await press(page, "Last hour");
    await page.waitForURL(/to=/);
    const to = new URL(page.url()).searchParams.get("to") ?? "";
    expect(Math.abs(Date.now() - Date.parse(to))).toBeLessThan(60_000);
  });

  test.each(["desktop", "phone"] as const)(
    "cancels a replay after saying what becomes of what waits, on a %s",
    async (size) => {
      const { page, account, answerWith, received } = await open({ size });
      await account.ingestAll([{ n: 1 }, { n: 2 }]);
      await received(2);
      // The first one does not end, so that the second waits its turn.
      answerWith(503);
      await page.goto(`${server.url}/replays?kind=all`);
      await press(page, "Replay all 2 events");
      await seeText(page, "2 waiting");
      await page.getByLabel("Label").fill("second");
      await press(page, "Replay all 2 events");
      await seeText(page, "Replay second is queued: another replay is running.");
      await seeText(page, /^Waiting for its turn$/);
      await seeText(page, /^Waits for all-\d{8}-\d{6}, which has 2 deliveries left\.$/);
      await browser.inspect(page, "replays-running");

      await press(page, "Cancel second");
      await seeText(page, "Nothing more will be sent. Waiting deliveries return to their previous state.");
      await browser.inspect(page, "replays-cancel");
      await press(page, "Cancel the replay");
      await seeText(page, "Replay second cancelled.");
      await seeText(page, /^Cancelled$/);
      expect((await account.get<{ replays: object[] }>("/v1/events/replays")).replays).toMatchObject([
        { replayGroupId: "second", status: "cancelled", queued: 0 },
        { status: "running", queued: 2 },
      ]);
    },
  );

  test.each(["desktop", "phone"] as const)(
    "shows replays of one event each under one label as one, and cancels them together, on a %s",
    async (size) => {
      const { page, account, answerWith, received } = await open({ size });
      const ids = await account.ingestAll([{ n: 1 }, { n: 2 }, { n: 3 }]);
      await received(3);
      answerWith(503);
      await account.post("/v1/events/replays/single", { eventId: ids[0], replayGroupId: "first" });
      for (const eventId of ids) await account.post("/v1/events/replays/single", { eventId, replayGroupId: "again" });
      const rows = page.locator(".replay");
      await seeText(page, "3 deliveries queued");
      expect(await rows.count()).toBe(2);
      await press(page, "Show each of 3");
      await rows.nth(4).waitFor();
      expect(await rows.first().locator(".replay").getByRole("link", { name: "See its events" }).count()).toBe(3);
      await browser.inspect(page, "replays-group");
      await press(page, "Hide each");
      await press(page, "Cancel again");
      await seeText(page, "Waiting deliveries return to their previous state: 3 at the moment.");
      await press(page, "Cancel the replay");
      await seeText(page, "3 returned");
      expect((await account.get<{ replays: object[] }>("/v1/events/replays")).replays).toMatchObject([
        ...Array.from({ length: 3 }, () => ({ replayGroupId: "again", status: "cancelled", returned: 1 })),
        { replayGroupId: "first", superseded: 1 },
      ]);
    },
  );

  test("shows replays under one label whole where they go on on the next page", async () => {
    const { page, account, received } = await open({ size: "desktop" });
    const eventId = await account.ingest({ n: 1 });
    await received(1);
    const post = (replayGroupId: string) => account.post("/v1/events/replays/single", { eventId, replayGroupId });
    for (let n = 0; n < 3; n += 1) await post("again");
    for (let n = 0; n < 48; n += 1) await post(`number ${n}`);
    await page.getByText("number 47", { exact: true }).waitFor();
    await press(page, "Show each of 3");
    await seeText(page, /^1–50 of 51 replays$/);
    await follow(page, "Older");
    await seeText(page, /^51–51 of 51 replays$/);
    await page.getByRole("button", { name: "Show each of 3", exact: true }).waitFor();
  });

  test("asks before it sends more than a hundred events again", async () => {
    const { page, account, received } = await open({ size: "phone" });
    await account.ingestAll(Array.from({ length: 101 }, (_, n) => ({ n })));
    await received(101);
    await page.goto(`${server.url}/replays?kind=all`);
    await press(page, "Replay all 101 events …");
    const dialog = page.getByRole("dialog", { name: "Replay all 101 events?" });
    await dialog.getByText(/^They will be delivered again to every registered webhook\.$/).waitFor();
    expect(await dialog.locator(".facts").textContent()).toMatch(
      /^SelectionEverythingAcceptedAt any timeLabelall-\d{8}-\d{6}$/,
    );
    await browser.inspect(page, "replays-asks");
    await press(dialog, "Not now");
    expect((await account.get<{ total: number }>("/v1/events/replays")).total).toBe(0);
    await press(page, "Replay all 101 events …");
    const label = await page.getByLabel("Label").inputValue();
    await press(dialog, "Start the replay");
    await seeText(page, "101 delivered");
    expect(await page.getByLabel("Label").inputValue()).not.toBe(label);
  });

  test("says so when there are too many at a time", async () => {
    const { page, account, answerWith, received } = await open({
      size: "phone",
      path: "?kind=all",
      provoked: [tooMany],
    });
    await account.ingest({ n: 1 });
    await received(1);
    answerWith(503);
    for (let n = 0; n < 11; n += 1) await account.post("/v1/events/replays/all", { replayGroupId: `replay ${n}` });
    await page.reload();
    await press(page, "Replay 1 event");
    await seeText(page, "The account has 11 unfinished replays; wait for one to finish, or cancel one.");
    await browser.inspect(page, "replays-too-many");
  });

  test("pages through its history by the URL", async () => {
    const { page, account } = await open({ size: "desktop" });
    const eventId = await account.ingest({ n: 1 });
    for (let n = 1; n <= 51; n += 1) {
      await account.post("/v1/events/replays/single", { eventId, replayGroupId: `number ${n}` });
    }
    await page.getByText("number 51", { exact: true }).waitFor();
    await seeText(page, /^1–50 of 51 replays$/);
    await follow(page, "Older");
    await page.getByText("number 1", { exact: true }).waitFor();
    await page.reload();
    await seeText(page, /^51–51 of 51 replays$/);
    await page.goBack();
    await page.getByText("number 51", { exact: true }).waitFor();
  });

  test("replays nothing while no webhook is enabled, and enables it", async () => {
    const { page, account, answerWith, received } = await open({ size: "desktop" });
    answerWith(410);
    await account.ingestAll([{ n: 1 }, { n: 2 }, { n: 3 }]);
    await received(3);
    // The receiver has them before they are settled, and the page counts once.
    await until(
      () => account.get<{ total: number }>("/v1/events/state/FAILED?size=1"),
      ({ total }) => total === 3,
    );
    await page.reload();
    const replay = page.getByRole("button", { name: "Replay 3 failed events" });
    await replay.and(page.locator(":disabled")).waitFor();
    answerWith(204);
    await page.getByRole("button", { name: /^Enable / }).click();
    await replay.click();
    await seeText(page, "3 delivered");
  });

  test("says before that without a webhook a replay goes nowhere", async () => {
    const { page, account } = await open({ size: "desktop", path: "?kind=all" });
    await account.setWebhooks();
    await seeText(page, "No webhook is registered, so a replay has nowhere to go.");
    await follow(page, "Register a webhook first");
    await page.waitForURL(`${server.url}/webhooks`);
  });
});

interface Opened {
  size: "desktop" | "phone";
  path?: string;
  provoked?: readonly RegExp[];
}

let opened = 0;

/** A new account with a webhook of its own, on the page. */
async function open({ size, path = "", provoked = [] }: Opened) {
  opened += 1;
  const hook = `/hook-${opened}`;
  const account = await openAccount(server.url);
  await account.setWebhooks({ webhook_url: receiver.url + hook });
  const page: Page = await browser.page({ size, provoked });
  await account.signIn(page);
  await page.goto(`${server.url}/replays${path}`);
  await page.getByText("Live", { exact: true }).waitFor();
  return {
    page,
    account,
    answerWith: (status: number) => void answers.set(hook, status),
    /** Resolves when as many deliveries have come to the webhook. */
    received: (n: number) =>
      receiver.waitFor(() => receiver.requests.filter(({ path: to }) => to === hook).length >= n),
  };
}
