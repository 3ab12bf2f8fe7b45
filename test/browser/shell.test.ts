import { describe, expect, test } from "bun:test";
import { noBrowser, openBrowser } from "./browser.ts";
import { startExecutable } from "./executable.ts";
import { openAccount } from "./signed-in.ts";
import { left, press, seeHeading, seePath, seeText } from "./visitor.ts";

const server = await startExecutable();
const browser = openBrowser(server.url);

describe.skipIf(noBrowser !== null)("the frame around every view", () => {
  test("has on a phone what its bar has no room for, as rows of a sheet", async () => {
    const page = await browser.page({ size: "phone", provoked: [left] });
    await (await openAccount(server.url)).signIn(page);
    await page.goto(server.url);
    await press(page, "More");
    const sheet = page.getByRole("dialog");
    const rows = sheet.getByRole("listitem");
    expect((await rows.allTextContents()).map((text) => text.trim())).toEqual([
      "Replays",
      "API keys",
      "Plan",
      "API reference",
    ]);
    expect(await page.evaluate<unknown>(lookOfRow)).toEqual({ direction: "row", line: "1px" });
    await browser.inspect(page, "more");
    await press(sheet, "Close");
    await sheet.waitFor({ state: "detached" });
    await press(page, "More");
    await sheet.getByRole("link", { name: "Plan" }).click();
    await seePath(page, "/plan");
    await sheet.waitFor({ state: "detached" });
  });

  test("shows its shortcuts until one closes them, by a button or beside them", async () => {
    const page = await browser.page({ size: "desktop" });
    await (await openAccount(server.url)).signIn(page);
    await page.goto(server.url);
    await seeHeading(page, "Overview");
    const dialog = page.getByRole("dialog", { name: "Keyboard shortcuts" });
    await page.keyboard.press("?");
    await dialog.getByText("Go to Events").click();
    await browser.inspect(page, "shortcuts");
    await press(dialog, "Close");
    await dialog.waitFor({ state: "detached" });
    await page.keyboard.press("?");
    await dialog.waitFor();
    await page.mouse.click(5, 5);
    await dialog.waitFor({ state: "detached" });
    await seeText(page, "No events yet.");
  });

  test("is skipped by one key, left out on paper, and keeps what has a meaning in colours of the system", async () => {
    const page = await browser.page({ size: "desktop", provoked: [left] });
    const account = await openAccount(server.url);
    await account.ingest({ n: 1 });
    await account.signIn(page);
    await page.goto(server.url);
    await page.locator("canvas").first().waitFor();
    // What the Tab key comes to first, from outside of the page.
    expect(await page.evaluate<string>("document.querySelector('a').textContent")).toBe("Skip to the content");
    await page.getByRole("link", { name: "Skip to the content" }).focus();
    await browser.inspect(page, "skip");
    await page.keyboard.press("Enter");
    expect(await page.evaluate<string>("document.activeElement.id")).toBe("content");

    const menu = page.getByRole("navigation", { name: "Main" });
    await page.emulateMedia({ media: "print" });
    expect(await menu.isVisible()).toBe(false);
    expect(await page.getByRole("heading", { name: "Overview" }).isVisible()).toBe(true);
    await page.emulateMedia({ media: "screen", forcedColors: "active" });
    expect(await menu.isVisible()).toBe(true);
    const [swatch, token] = await page.evaluate<string[]>(coloursOfSwatch);
    expect(swatch).toBe(String(token));
  });

  test("is there for a path that there is not, and for whoever is not signed in as well", async () => {
    const page = await browser.page({ size: "phone", provoked: [left] });
    expect((await page.goto(`${server.url}/nothing/here`))?.status()).toBe(404);
    await seeHeading(page, "Nothing here");
    await browser.inspect(page, "nowhere");
    await page.getByRole("link", { name: "Go to the start page" }).click();
    await seeHeading(page, "Webhooks that arrive");
    await (await openAccount(server.url)).signIn(page);
    await page.goto(`${server.url}/nothing`);
    await seeText(page, "Live");
    await page.getByRole("link", { name: "Go to the overview" }).click();
    await seeHeading(page, "Overview");
  });

  test("is one press away from the API reference, which is dark where the dashboard is", async () => {
    const page = await browser.page({ size: "desktop", scheme: "dark", provoked: [left] });
    await page.goto(`${server.url}/docs`);
    await page.getByRole("heading", { name: /Postrider/ }).waitFor();
    const ground = "getComputedStyle(document.documentElement).backgroundColor";
    expect(await page.evaluate<string>(ground)).toBe("rgb(28, 32, 34)");
    await page.emulateMedia({ colorScheme: "light" });
    await page.waitForFunction(`${ground} === "rgba(0, 0, 0, 0)"`);
    await page.getByRole("link", { name: "Back to the dashboard" }).click();
    await seeHeading(page, "Webhooks that arrive");
  });
});

// What runs in the page is text: these sources are compiled without the types of a browser.

const lookOfRow = `({
  direction: getComputedStyle(document.querySelector("dialog li + li a")).flexDirection,
  line: getComputedStyle(document.querySelector("dialog li + li")).borderTopWidth,
})`;

/** The colour that the mark of a legend has, and the one of the token that it is to have. */
const coloursOfSwatch = `(() => {
  const probe = document.body.appendChild(document.createElement("i"));
  probe.style = "forced-color-adjust: none; background: var(--delivered-mass)";
  return [document.querySelector(".chart-key i"), probe].map((element) => getComputedStyle(element).backgroundColor);
})()`;
