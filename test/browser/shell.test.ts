import { describe, expect, test } from "bun:test";
import { noBrowser, openBrowser } from "./browser.ts";
import { startExecutable } from "./executable.ts";
import { openAccount } from "./signed-in.ts";
import { press, seeHeading, seePath, seeText } from "./visitor.ts";

const server = await startExecutable();
const browser = openBrowser(server.url);

describe.skipIf(noBrowser !== null)("the frame around every view", () => {
  test("has on a phone what its bar has no room for, as rows of a sheet", async () => {
    const page = await browser.page({ size: "phone" });
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
    const page = await browser.page({ size: "desktop" });
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

  test("keeps its lines: one width, text on one baseline, hints in a plain weight", async () => {
    const page = await browser.page({ size: "desktop" });
    await (await openAccount(server.url)).signIn(page);
    await page.setViewportSize({ width: 1600, height: 900 });
    const widths: number[] = [];
    for (const [path, heading] of [
      ["/keys", "API keys"],
      ["/plan", "Plan"],
      ["/welcome", "Send your first event"],
    ] as const) {
      await page.goto(server.url + path);
      await seeHeading(page, heading);
      const panel = page.locator("section.panel").first();
      await panel.waitFor();
      widths.push((await panel.boundingBox())?.width ?? 0);
    }
    expect(new Set(widths).size).toBe(1);

    await page.goto(`${server.url}/plan`);
    const ends = await Promise.all(
      [page.locator("dt", { hasText: "Tenant id" }), page.locator(".facts .id > span")].map(async (text) => {
        const box = await text.boundingBox();
        return (box?.y ?? 0) + (box?.height ?? 0);
      }),
    );
    expect(Math.abs(Number(ends[0]) - Number(ends[1]))).toBeLessThanOrEqual(2);

    await press(page, "Delete the account …");
    const weight = "getComputedStyle(document.querySelector('.field .hint')).fontWeight";
    expect(await page.evaluate<string>(weight)).toBe("400");
    // What waits is no failure: another hue, in light as in dark.
    for (const colorScheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme });
      const [waiting = "", failed = ""] = await page.evaluate<string[]>(coloursOfStates);
      expect(Math.abs(hueOf(waiting) - hueOf(failed))).toBeGreaterThan(30);
    }
  });

  test("is there for a path that there is not, and for whoever is not signed in as well", async () => {
    const page = await browser.page({ size: "phone" });
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
    // As a link that was cut in the middle of a character.
    await page.goto(`${server.url}/events/evt_%E2%80`);
    await seeHeading(page, "Nothing here");
  });

  test("is one press away from the API reference, which is dark where the dashboard is", async () => {
    const page = await browser.page({ size: "desktop", scheme: "dark" });
    await page.goto(`${server.url}/docs`);
    await page.getByRole("heading", { name: /Postrider/ }).waitFor();
    const ground = "getComputedStyle(document.documentElement).backgroundColor";
    expect(await page.evaluate<string>(ground)).toBe("rgb(28, 32, 34)");
    await page.emulateMedia({ colorScheme: "light" });
    // A text to wait for would be evaluated in the page, whose policy forbids that.
    await page.locator("html:not(.dark-mode)").waitFor();
    expect(await page.evaluate<string>(ground)).toBe("rgba(0, 0, 0, 0)");
    await page.getByRole("link", { name: "Back to the dashboard" }).click();
    await seeHeading(page, "Webhooks that arrive");
  });
});

/** In degrees, of "#rrggbb". */
function hueOf(colour: string): number {
  const [r = 0, g = 0, b = 0] = [1, 3, 5].map((at) => Number.parseInt(colour.trim().slice(at, at + 2), 16));
  return (Math.atan2(Math.sqrt(3) * (g - b), 2 * r - g - b) * 180) / Math.PI;
}

// What runs in the page is text: these sources are compiled without the types of a browser.

const lookOfRow = `({
  direction: getComputedStyle(document.querySelector("dialog li + li a")).flexDirection,
  line: getComputedStyle(document.querySelector("dialog li + li")).borderTopWidth,
})`;

/** Of what waits, in bars, and of what failed. */
const coloursOfStates = `(() => {
  const style = getComputedStyle(document.documentElement);
  return ["--waiting-mass", "--failed"].map((name) => style.getPropertyValue(name));
})()`;

/** The colour that the mark of a legend has, and the one of the token that it is to have. */
const coloursOfSwatch = `(() => {
  const probe = document.body.appendChild(document.createElement("i"));
  probe.style = "forced-color-adjust: none; background: var(--delivered-mass)";
  return [document.querySelector(".chart-key i"), probe].map((element) => getComputedStyle(element).backgroundColor);
})()`;
