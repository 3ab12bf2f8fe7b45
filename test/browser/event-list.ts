import { expect } from "bun:test";
import type { Locator, Page } from "playwright-core";
import type { Browser, Look } from "./browser.ts";
import type { Account } from "./signed-in.ts";

/** What people do in the list of events, and what they see there. */

/** The list of an account, as somebody sees it who is signed in. */
export function eventLists(browser: Browser, url: string) {
  return async (account: Account, look: Partial<Look> = {}, query = ""): Promise<Page> => {
    const page = await browser.page({ size: "desktop", ...look, provoked: look.provoked ?? [] });
    await account.signIn(page);
    await page.goto(`${url}/events${query}`);
    await page.getByRole("heading", { name: "Events" }).waitFor();
    return page;
  };
}

export async function see(...what: readonly Locator[]): Promise<void> {
  for (const one of what) await one.waitFor();
}

/** What comes from now on arrives. */
export const untilLive = (page: Page) => see(page.getByText("Live", { exact: true }));

export const row = (page: Page, text: string | RegExp) => page.locator("a.event-row", { hasText: text });

export const focused = (locator: Locator) => locator.and(locator.page().locator(":focus"));

export const idsOf = (page: Page) =>
  page.evaluate<string[]>("[...document.querySelectorAll('a.event-row')].map((row) => row.href.split('/').at(-1))");

/** Waits until these are the rows. */
export async function seeIds(page: Page, ids: readonly string[]): Promise<void> {
  const rows = page.locator("a.event-row");
  const rowOf = (id = "") => page.locator(`[href="/events/${id}"]`);
  await see(rows.first().and(rowOf(ids[0])), rows.last().and(rowOf(ids.at(-1))));
  expect(await idsOf(page)).toEqual([...ids]);
}

export const choose = (page: Page, label: string, option: string) =>
  page.getByRole("combobox", { name: label }).selectOption({ label: option });

export async function search(page: Page, text: string): Promise<void> {
  await page.getByRole("searchbox").fill(text);
  await page.keyboard.press("Enter");
}

export const chipsOf = (page: Page) => page.locator(".chip > span:first-child").allTextContents();

export const removeChip = (page: Page, text: string) => page.getByRole("button", { name: `${text} , remove` }).click();

/** On a phone the fields are folded. */
export async function openFilters(page: Page, size: Look["size"]): Promise<void> {
  if (size === "phone") await page.getByRole("button", { name: /^Filters/ }).click();
}

export const chosen = (page: Page, label: string) =>
  page.getByRole("combobox", { name: label }).locator("option:checked").textContent();

/** Scrolls as somebody does, until the page has followed. */
export async function scroll(page: Page, y: number): Promise<void> {
  const before = await page.evaluate<number>("scrollY");
  await page.mouse.wheel(0, y);
  // Looked at in each frame, after the page has heard of it.
  await page.evaluate(`new Promise((resolve) => {
    const look = () => (scrollY === ${before} ? requestAnimationFrame(look) : resolve());
    look();
  })`);
}
