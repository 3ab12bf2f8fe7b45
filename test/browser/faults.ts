import type { Page } from "playwright-core";

/**
 * Notes whatever no page of ours may do. A page that is itself answered with 4xx is the test's own business: a declined
 * card is 402.
 *
 * @returns the list of faults, which grows for as long as the page is open
 */
export function watch(page: Page, home: string): readonly string[] {
  const faults: string[] = [];

  page.on("console", (message) => {
    // Known from the responses, and told there with more care.
    if (message.text().startsWith("Failed to load resource")) return;
    if (message.type() === "error" || message.type() === "warning") faults.push(`console: ${message.text()}`);
  });

  page.on("pageerror", (error) => faults.push(`uncaught: ${error.message}`));

  page.on("request", (request) => {
    const url = new URL(request.url());
    if (url.protocol !== "data:" && url.origin !== home) faults.push(`another host: ${url.origin}`);
  });

  page.on("requestfailed", (request) => faults.push(`no answer: ${request.url()} (${request.failure()?.errorText})`));

  page.on("response", (response) => {
    if (response.status() < 400 || response.request().isNavigationRequest()) return;
    faults.push(`${response.status()}: ${response.url()}`);
  });

  return faults;
}
