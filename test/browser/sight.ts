import type { Page } from "playwright-core";

/** Before the page is opened: as in a tab behind another one. A headless browser takes every tab for one that is seen. */
export async function openHidden(page: Page): Promise<void> {
  await page.addInitScript(visibility("hidden"));
}

export async function hide(page: Page): Promise<void> {
  await page.evaluate(visibility("hidden"));
}

export async function show(page: Page): Promise<void> {
  await page.evaluate(visibility("visible"));
}

// What runs in the page is text: these sources are compiled without the types of a browser.

const visibility = (state: "hidden" | "visible") => `
  Object.defineProperty(document, "visibilityState", { configurable: true, value: "${state}" });
  document.dispatchEvent(new Event("visibilitychange"));`;
