import type { Cause } from "./failing.ts";

/** How the deliveries end that wait for a webhook when it is removed or disabled. */
const endings: readonly Cause["code"][] = ["webhook_removed", "webhook_disabled"];

/**
 * What the chart counts, in words: less than the figures. Statistics count attempts and what is accepted, and a delivery
 * that ends while it waits is neither (rules, section 7).
 */
export function chartWords(causes: readonly Pick<Cause, "code">[]): string {
  const isAnyLeftOut = causes.some(({ code }) => endings.includes(code));
  const but = isAnyLeftOut ? ", but not what was still waiting when its webhook was removed or disabled" : "";
  return `The chart shows each run as it ended${but}.`;
}
