import { describe, expect, test } from "bun:test";
import { noBrowser, openBrowser } from "./browser.ts";
import { startExecutable } from "./executable.ts";
import { openAccount } from "./signed-in.ts";
import { ask, seeHeading, seeText } from "./visitor.ts";

const server = await startExecutable({ POSTRIDER_PAUSED: "deliveries,charges" });
const browser = openBrowser(server.url);

const noDeliveries =
  "The operator of this server has paused deliveries. Events are still accepted and will be delivered once deliveries resume.";
const noCharges = "The operator of this server has paused payments. Nothing is charged.";

describe.skipIf(noBrowser !== null)("a paused server", () => {
  test("says on every view what it does not do, until its operator resumes it", async () => {
    const account = await openAccount(server.url);
    await account.setWebhooks({ webhook_url: (await account.get<{ url: string }>("/v1/inbox")).url });
    await account.ingest({ n: 1 });
    const page = await browser.page({ size: "phone" });
    await account.signIn(page);
    for (const [path, title] of [
      ["/", "Overview"],
      ["/events", "Events"],
    ] as const) {
      await page.goto(server.url + path);
      await seeHeading(page, title);
      await seeText(page, noDeliveries);
      await seeText(page, noCharges);
    }
    await page.getByText("Waiting", { exact: true }).last().waitFor();
    await browser.inspect(page, "paused");

    await resume("deliveries");
    await page.getByText(/Delivered · .+ms · 1 try/).waitFor();
    await page.getByText(noDeliveries).waitFor({ state: "detached" });
    await seeText(page, noCharges);
    expect(await page.getByText(noDeliveries).count()).toBe(0);

    await resume("charges");
    await page.reload();
    await page.getByText(/Delivered · .+ms · 1 try/).waitFor();
    expect(await page.getByText(noCharges).count()).toBe(0);
  });
});

describe.skipIf(noBrowser !== null)("a suspended account", () => {
  test.each([
    ["operator", "what waits is not delivered until the operator resumes it."],
    ["payment", "what waits is still delivered."],
  ] as const)("by %s says whether what waits goes out: %s", async (by, words) => {
    const account = await openAccount(server.url);
    await account.setWebhooks({ webhook_url: (await account.get<{ url: string }>("/v1/inbox")).url });
    await account.ingest({ n: 1 });
    const page = await browser.page({ size: "desktop" });
    await account.signIn(page);
    await page.route("**/v1/tenants/me", async (route) => {
      const response = await route.fetch();
      await route.fulfill({ response, json: { ...(await response.json()), status: "suspended", suspended_by: [by] } });
    });
    await page.goto(server.url);
    await seeText(page, `Your account is suspended: new events are refused, and ${words}`);
    const held = page.getByText("Nothing is delivered until the operator of this server resumes deliveries.");
    if (by === "operator") await held.waitFor();
    else await seeText(page, /delivers\.$/);
    expect(await held.count()).toBe(by === "operator" ? 1 : 0);
    await browser.inspect(page, `suspended-by-${by}`);
  });
});

async function resume(what: "deliveries" | "charges"): Promise<void> {
  const { status, json } = await ask(`${server.url}/operator/resume`, "POST", server.operatorToken(), { what: [what] });
  expect([status, json.resumed]).toEqual([200, [what]]);
}
