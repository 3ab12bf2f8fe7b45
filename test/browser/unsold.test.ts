import { describe, expect, test } from "bun:test";
import { commands } from "../../src/cli/commands.ts";
import { runCommand } from "../../src/cli/run.ts";
import { createScriptedIo } from "../support/scripted-io.ts";
import { noBrowser, openBrowser } from "./browser.ts";
import { startExecutable } from "./executable.ts";
import { openAccount } from "./signed-in.ts";
import { seeHeading } from "./visitor.ts";

/** Decisions of the operator: where payments are off, nothing speaks of what is not sold. */
const settings = { POSTRIDER_PAYMENTS: "off" };
const server = await startExecutable(settings);
const browser = openBrowser(server.url);

/** What is sold, in every word that the program has for it. */
const forbidden = /\b(plans?|prices?|priceKobo|cards?|paid|upgrad\w+|NGN|naira|subscriptions?|invoic\w+)\b/gi;

/** The type of events in examples. */
const wordsIn = (text: string) => text.replaceAll("order.paid", "").match(forbidden) ?? [];

test("the words are found where payments are on", async () => {
  const { io, out } = createScriptedIo({ env: { POSTRIDER_PAYMENTS: "sandbox" } });
  await runCommand(["help"], io);
  expect(wordsIn(out.join("\n"))).toContain("price");
});

describe.skipIf(noBrowser !== null)("where payments are off", () => {
  test("no page speaks of plans, prices or cards", async () => {
    const account = await openAccount(server.url);
    await account.ingest({ n: 1 });
    const page = await browser.page({ size: "desktop" });
    const seen: Record<string, string[]> = {};
    const look = async (where: string) => {
      // Addresses are for programs.
      const text = (await page.locator("body").ariaSnapshot()).replaceAll(/^.*\/url: .*$/gm, "");
      seen[where] = wordsIn(`${await page.title()} ${text}`);
    };
    await page.goto(server.url);
    await page.getByRole("button", { name: "Create an account" }).waitFor();
    await look("start");
    await page.goto(`${server.url}/sign-up`);
    await page.getByRole("button", { name: "Create an account" }).waitFor();
    await look("sign-up");
    await page.goto(`${server.url}/sign-in`);
    await seeHeading(page, "Sign in");
    await look("sign-in");
    await account.setWebhooks({ webhook_url: "https://shop.example.com/hook" });
    await account.signIn(page);
    await page.goto(server.url);
    for (const view of ["Overview", "Events", "Webhooks", "Replays", "Inbox", "API keys", "Usage"]) {
      await page.getByRole("navigation", { name: "Main" }).getByRole("link", { name: view, exact: true }).click();
      await seeHeading(page, view);
      await page.locator(".skeleton").first().waitFor({ state: "detached" });
      await look(view);
    }
    await browser.inspect(page, "usage");
    await page.getByRole("button", { name: /Delete the account/ }).click();
    await look("deletion");
    await page.goto(`${server.url}/welcome`);
    await seeHeading(page, "Send your first event");
    await look("welcome");
    expect(Object.entries(seen).filter(([, words]) => words.length > 0)).toEqual([]);
  });
});

test("no answer, document or message speaks of them", async () => {
  const account = await openAccount(server.url);
  const read = async (path: string) => (await fetch(server.url + path)).text();
  const ask = (body: object) => fetch(`${server.url}/v1/tenants`, { method: "POST", body: JSON.stringify(body) });
  const refused = await ask({ tier: "pro", name: "Ada", email: "ada@example.com", password: "A stamp for 1 letter!" });
  expect(refused.status).toBe(503);
  const texts = {
    about: await read("/v1/about"),
    document: await read("/openapi.json"),
    refusal: await refused.text(),
    account: JSON.stringify(await account.get("/v1/tenants/me")),
    webhooks: await account
      .setWebhooks(...[1, 2].map((n) => ({ webhook_url: `https://a.example/${n}` })))
      .catch(String),
  };
  expect(texts.document).toContain("/v1/tenants/webhooks");
  expect(Object.entries(texts).map(([name, text]) => [name, wordsIn(text ?? "")])).toEqual(
    Object.keys(texts).map((name) => [name, []]),
  );
});

test("no help of a command speaks of them", async () => {
  for (const words of [[], ...commands.map((command) => command.words)]) {
    const { io, out } = createScriptedIo({ env: settings });
    expect(await runCommand(["help", ...words], io)).toBe(0);
    // A database of an earlier release is upgraded, too.
    const found = wordsIn(out.join("\n")).filter((word) => !/^upgrad/i.test(word));
    expect({ words, found }).toEqual({ words, found: [] });
  }
});
