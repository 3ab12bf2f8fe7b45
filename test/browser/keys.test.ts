import { describe, expect, test } from "bun:test";
import type { Page } from "playwright-core";
import { noBrowser, openBrowser } from "./browser.ts";
import { startExecutable } from "./executable.ts";
import { ask, press, seeText, signedIn } from "./visitor.ts";

const server = await startExecutable();
const browser = openBrowser(server.url);

const secret = /svc_sk_[0-9A-Za-z]{40}/;

describe.skipIf(noBrowser !== null)("the keys' page", () => {
  test.each(["desktop", "phone"] as const)(
    "masks a key, reveals it, and replaces it with a day of grace, on a %s",
    async (size) => {
      const page = await browser.page({
        size,
        permissions: ["clipboard-read", "clipboard-write"],
      });
      const { first } = await openKeys(page);
      expect(await page.content()).not.toMatch(secret);
      await browser.inspect(page, "keys");

      const name = `the key that ends in ${first.slice(-4)}`;
      await press(page, `Reveal ${name}`);
      await seeText(page, first);
      await press(page, `Hide ${name}`);
      expect(await page.content()).not.toMatch(secret);
      await press(page, `Copy ${name}`);
      expect(await page.evaluate<string>("navigator.clipboard.readText()")).toBe(first);

      await seeText(page, "never");
      expect(await send(first)).toBe(202);
      await page.getByText("never").waitFor({ state: "detached" });

      await press(page, "Rotate the key …");
      await seeText(page, `svc_sk_••••${first.slice(-4)} and the new key both work`);
      await page.getByRole("radio", { name: "After 1 day" }).and(page.locator(":focus")).waitFor();
      await browser.inspect(page, "rotate-dialog");
      await press(page, "Rotate the key");
      await seeText(page, "The key is rotated.");
      await seeText(page, /^Expires in (1 d|23 h)/);
      await browser.inspect(page, "keys-rotated");
      expect(await send(first)).toBe(202);
    },
  );

  test("replaces a key at once, and says before that whatever uses it is refused", async () => {
    const page = await browser.page({ size: "desktop" });
    const { first, token } = await openKeys(page);
    await press(page, "Rotate the key …");
    await page.getByRole("radio", { name: /^At once/ }).check();
    await seeText(page, `Requests that use svc_sk_••••${first.slice(-4)} are refused (401) at once`);
    await browser.inspect(page, "rotate-at-once");
    await press(page, "Rotate the key");
    await seeText(page, "1 expired key");
    expect(await send(first)).toBe(401);
    const [newest] = await keysOf(token);
    expect(await send(newest?.key ?? "")).toBe(202);
    await page.getByText("1 expired key").click();
    await seeText(page, "Expired");
    await browser.inspect(page, "keys-ended");
  });

  test("shows a key that was made elsewhere", async () => {
    const page = await browser.page({ size: "phone" });
    const { token } = await openKeys(page);
    const { json } = await ask(`${server.url}/v1/tenants/api-keys/rotate`, "POST", token, { grace_period_seconds: 60 });
    await seeText(page, `svc_sk_••••${String(json.key).slice(-4)}`);
  });
});

/** A new account, on the page of its keys. */
async function openKeys(page: Page): Promise<{ first: string; token: string }> {
  const { token } = await signedIn(page, server.url);
  await page.goto(`${server.url}/keys`);
  await seeText(page, "Active");
  const [key] = await keysOf(token);
  return { first: key?.key ?? "", token };
}

const keysOf = async (token: string) =>
  (await ask<{ key: string }[]>(`${server.url}/v1/tenants/api-keys`, "GET", token)).json;

const send = async (key: string) => (await ask(`${server.url}/v1/ingest`, "POST", key, { payload: {} })).status;
