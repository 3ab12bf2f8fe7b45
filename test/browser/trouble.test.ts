import { describe, expect, test } from "bun:test";
import { noBrowser, openBrowser } from "./browser.ts";
import { startExecutable } from "./executable.ts";
import { openAccount } from "./signed-in.ts";
import { press, seeHeading } from "./visitor.ts";

const server = await startExecutable();
const browser = openBrowser(server.url);

/** What a view itself reads: who is signed in and the stream are the frame's. */
const reads = /\/v1\/(?!stream|about|tenants\/me)/;

const troubles = [
  { status: 503, message: "The storage does not answer; repeat the request.", code: "storage_unavailable" },
  { status: 500, message: "Something went wrong on our side.", code: "internal" },
] as const;

describe.skipIf(noBrowser !== null)("a view whose reading fails", () => {
  test.each([
    { path: "/", title: "Overview" },
    { path: "/events", title: "Events" },
    { path: "/webhooks", title: "Webhooks" },
    { path: "/replays", title: "Replays" },
    { path: "/inbox", title: "Inbox" },
    { path: "/keys", title: "API keys" },
    { path: "/plan", title: "Plan" },
  ])("says why in the server's words and reads again when asked: $title", async ({ path, title }) => {
    const account = await openAccount(server.url);
    await account.ingest({ n: 1 });
    const page = await browser.page({ size: "desktop", provoked: [/^50[03]: /] });
    await account.signIn(page);
    let trouble: (typeof troubles)[number] | null = troubles[0];
    await page.route(reads, (route) => {
      if (!trouble) return route.continue();
      const { status, ...json } = trouble;
      return route.fulfill({ status, json });
    });
    await page.goto(server.url + path);
    await seeHeading(page, title);
    const alerts = page.getByRole("alert");
    const again = alerts.getByRole("button", { name: "Try again" });
    await alerts.filter({ hasText: troubles[0].message }).first().waitFor();

    trouble = troubles[1];
    await again.first().click();
    await alerts.filter({ hasText: troubles[1].message }).first().waitFor();

    trouble = null;
    for (let failed = await again.count(); failed > 0; failed = await again.count()) {
      // In one go: a section that reads again by itself takes its button away between a look and a click.
      await again.evaluateAll(clickAll);
      await again.nth(failed - 1).waitFor({ state: "detached" });
    }
    await page.locator("[aria-busy=true]").first().waitFor({ state: "detached" });
    expect(await alerts.count()).toBe(0);
  });
});

describe.skipIf(noBrowser !== null)("an answer that is not the server's", () => {
  /** As a proxy answers everything that wants a login first. */
  const login = { status: 200, contentType: "text/html", body: "<!doctype html><title>Log in</title>" };
  const said = "The answer is incomplete, or not this server's.";

  test("is called that where something is read, until it can be read", async () => {
    const account = await openAccount(server.url);
    await account.ingest({ n: 1 });
    const page = await browser.page({ size: "desktop" });
    await account.signIn(page);
    await page.route("**/v1/events?*", (route) => route.fulfill(login));
    await page.goto(`${server.url}/events`);
    await page.getByRole("alert").getByText(said).waitFor();
    await page.unrouteAll();
    await press(page, "Try again");
    await page.locator(".event-row").waitFor();
  });

  test("starts no replay", async () => {
    const account = await openAccount(server.url);
    const id = await account.ingest({ n: 1 });
    const page = await browser.page({ size: "desktop" });
    await account.signIn(page);
    await page.route("**/v1/events/replays/single", (route) => route.fulfill(login));
    await page.goto(`${server.url}/events/${id}`);
    await press(page, "Replay");
    await page.getByRole("status").getByText(said).waitFor();
  });
});

/** Runs in the page. */
function clickAll(buttons: unknown[]): void {
  for (const button of buttons) (button as { click(): void }).click();
}
