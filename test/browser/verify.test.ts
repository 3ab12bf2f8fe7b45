import { afterAll, describe, expect, test } from "bun:test";
import type { Page } from "playwright-core";
import { type ReceivedRequest, startReceiver } from "../support/receiver.ts";
import { noBrowser, openBrowser } from "./browser.ts";
import { startExecutable } from "./executable.ts";
import { type Account, openAccount } from "./signed-in.ts";
import { press, seeText } from "./visitor.ts";

const server = await startExecutable();
const browser = openBrowser(server.url);
const receiver = startReceiver();
afterAll(() => receiver.stop());

const secretPattern = /whsec_[0-9A-Za-z+/]{20}/;

describe.skipIf(noBrowser !== null)("how to verify deliveries", () => {
  test.each(["desktop", "phone"] as const)("is shown with the account's own keys filled in, on a %s", async (size) => {
    const { page, account } = await open(size);
    const jwksUrl = `${server.url}/v1/tenants/${account.id}/jwks.json`;
    const { keys } = await account.get<{ keys: { x: string; kid: string }[] }>(`/v1/tenants/${account.id}/jwks.json`);
    const { secret } = await account.get<{ secret: string }>("/v1/tenants/signing-secret");
    const code = (language: string) => page.getByRole("region", { name: `Receiver in ${language}` });

    await seeText(page, jwksUrl);
    const javaScript = (await code("JavaScript").textContent()) ?? "";
    expect(javaScript).toContain(`fetch("${jwksUrl}")`);
    expect(javaScript).toContain(keys[0]?.x ?? "no key");
    await press(page, "Go");
    expect(await code("Go").textContent()).toContain(`client.Get("${jwksUrl}")`);
    await press(page, "Python");
    await page.waitForURL(/\?language=python$/);
    expect(await code("Python").textContent()).toContain('os.environ["SIGNING_SECRET"]');
    await browser.inspect(page, "verify");

    expect(await page.content()).not.toMatch(secretPattern);
    await press(page, "Reveal the signing secret");
    expect(await code("Python").textContent()).toContain(`b64decode("${secret}"`);
    await press(page, "Copy receiver.py");
    expect(await page.evaluate<string>("navigator.clipboard.readText()")).toContain(secret);
    await press(page, "Hide the signing secret");
    expect(await page.content()).not.toMatch(secretPattern);
  });

  test.each(["desktop", "phone"] as const)("takes a real delivery, and no forged one, on a %s", async (size) => {
    const { page, account } = await open(size);
    const { headers, body } = await deliver(account, '{"amount": 12.50}');
    const lines = [...headers].map(([name, value]) => `${name}: ${value}`).join("\n");
    await check(page, lines, body.toString("utf8"));
    await seeText(page, "The signature verifies");
    expect(await page.getByText("Valid.").count()).toBe(4);

    await check(page, lines, body.toString("utf8").replace("12.50", "99.50"));
    await seeText(page, "The signature does not verify");
    expect(await page.getByText("Invalid.").count()).toBe(3);
    await browser.inspect(page, "check-forged");

    await check(page, JSON.stringify(Object.fromEntries(headers)), `${body.toString("utf8")}\n`);
    await seeText(page, "matches the body without its trailing line break, but not as it stands here");
    await check(page, "Content-Type: application/json", "{}");
    await seeText(page, "There is no signature to check");
  });

  test("does not take the delivery of another account", async () => {
    const { page } = await open("desktop");
    const other = await openAccount(server.url);
    await other.setWebhooks({ webhook_url: `${receiver.url}/${other.id}` });
    const { headers, body } = await deliver(other, '{"amount": 1}');
    await check(page, JSON.stringify(Object.fromEntries(headers)), body.toString("utf8"));
    await seeText(page, "which is not one of this account's keys");
    await seeText(page, "The signature does not verify");
  });

  test("fills in the latest delivery of the inbox as an example", async () => {
    const { page, account } = await open("phone");
    await press(page, "Use the latest inbox delivery");
    await seeText(page, "The inbox is empty.");
    await account.setWebhooks({ webhook_url: (await account.get<{ url: string }>("/v1/inbox")).url });
    const [webhook] = await account.get<{ id: string }[]>("/v1/tenants/webhooks");
    await account.post(`/v1/tenants/webhooks/${webhook?.id}/test`, {});
    await press(page, "Use the latest inbox delivery");
    await seeText(page, "The signature verifies");
    expect(await page.getByLabel("Body").inputValue()).toContain('"postrider.test"');
  });

  test("goes on after the secret was rotated: both sign for a week", async () => {
    const { page, account } = await open("desktop");
    const before = await deliver(account, "{}");
    await press(page, "Rotate the secret …");
    await seeText(page, "The previous one also signs for 7 days");
    await browser.inspect(page, "rotate-secret");
    await press(page, "Rotate the secret");
    await seeText(page, "The signing secret is rotated.");
    await seeText(page, /^The previous secret also signs until /);

    const after = await deliver(account, "{}");
    expect(after.headers.get("webhook-signature")?.match(/v1,/g)).toHaveLength(2);
    await check(page, JSON.stringify(Object.fromEntries(after.headers)), after.body.toString("utf8"));
    await seeText(page, "The signature verifies");
    await check(page, JSON.stringify(Object.fromEntries(before.headers)), before.body.toString("utf8"));
    await seeText(
      page,
      "The Ed25519 signature verifies; the one made with the secret does not: has it been replaced since?",
    );
  });
});

/** A new account whose webhook is the receiver, where its deliveries are verified. */
async function open(size: "desktop" | "phone") {
  const account = await openAccount(server.url);
  await account.setWebhooks({ webhook_url: `${receiver.url}/${account.id}` });
  const page = await browser.page({ size, permissions: ["clipboard-read", "clipboard-write"] });
  await account.signIn(page);
  await page.goto(`${server.url}/webhooks#verify`);
  await page.getByRole("heading", { name: "Check a delivery" }).waitFor();
  return { page, account };
}

async function deliver(account: Account, payload: string): Promise<ReceivedRequest> {
  const eventId = await account.ingest(payload);
  return receiver.waitFor(({ headers }) => headers.get("service-event-id") === eventId);
}

async function check(page: Page, headers: string, body: string): Promise<void> {
  await page.getByLabel("Headers").fill(headers);
  await page.getByLabel("Body").fill(body);
  await press(page, "Check the delivery");
}
