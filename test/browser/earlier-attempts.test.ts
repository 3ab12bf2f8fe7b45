import { describe, expect, test } from "bun:test";
import { noBrowser, openBrowser } from "./browser.ts";
import { startExecutable } from "./executable.ts";
import { startObedientReceiver } from "./obedient-receiver.ts";
import { openAccount } from "./signed-in.ts";

// As many attempts at once as the log keeps of a record.
const attempts = 100;
const server = await startExecutable({
  POSTRIDER_RETRY_SCHEDULE: Array(attempts - 1)
    .fill("1ms")
    .join(),
});
const browser = openBrowser(server.url);
const receiver = startObedientReceiver();

describe.skipIf(noBrowser !== null)("an event with more attempts than are shown at once", () => {
  test("shows the newest, and the earlier ones when asked", async () => {
    const account = await openAccount(server.url);
    const [first, second] = [`${receiver.url}/first`, `${receiver.url}/second`];
    await account.setWebhooks({ webhook_url: first });
    const page = await browser.page({ size: "desktop" });
    await account.signIn(page);
    const id = await account.ingest({ answer: 503 });
    await receiver.waitFor(attempts);
    await page.goto(`${server.url}/events/${id}`);
    await page.getByText("Failed", { exact: true }).waitFor();
    const earlier = page.getByRole("button", { name: "Show earlier attempts" });
    expect([await page.locator(".attempt").count(), await earlier.count()]).toEqual([attempts, 0]);

    await account.setWebhooks({ webhook_url: second });
    await page.getByRole("button", { name: "Replay", exact: true }).click();
    await page.getByText(`Showing the newest ${attempts} of ${2 * attempts} attempts.`).waitFor();
    await page.getByRole("region", { name: second }).getByText("Failed", { exact: true }).waitFor();
    expect(await page.getByRole("region", { name: first }).count()).toBe(0);
    await browser.inspect(page, "event-earlier-attempts");

    await earlier.click();
    await page.getByRole("region", { name: first }).waitFor();
    expect([await page.locator(".attempt").count(), await earlier.count()]).toEqual([2 * attempts, 0]);
  });
});
