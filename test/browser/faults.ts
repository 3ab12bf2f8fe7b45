import type { Page } from "playwright-core";

/**
 * Notes whatever no page of ours may do. A page that is itself answered with 4xx is the test's own business: a declined
 * card is 402.
 *
 * @param provoked what the test asks for on purpose, as it would stand in the list
 * @returns the list of faults, which grows for as long as the page is open
 */
export function watch(page: Page, home: string, provoked: readonly RegExp[]): readonly string[] {
  const faults: string[] = [];
  const note = (fault: string) => {
    if (!provoked.some((pattern) => pattern.test(fault))) faults.push(fault);
  };

  page.on("console", (message) => {
    // Known from the responses, and told there with more care.
    if (message.text().startsWith("Failed to load resource")) return;
    if (message.type() === "error" || message.type() === "warning") note(`console: ${message.text()}`);
  });

  page.on("pageerror", (error) => note(`uncaught: ${error.message}`));

  page.on("request", (request) => {
    const url = new URL(request.url());
    if (url.protocol !== "data:" && url.origin !== home) note(`another host: ${url.origin}`);
  });

  page.on("requestfailed", (request) => {
    const { errorText } = request.failure() ?? {};
    // A page that leaves, or is closed, takes its requests along.
    if (errorText !== "net::ERR_ABORTED") note(`no answer: ${request.url()} (${errorText})`);
  });

  page.on("response", (response) => {
    if (response.status() < 400 || response.request().isNavigationRequest()) return;
    note(`${response.status()}: ${response.url()}`);
  });

  return faults;
}
