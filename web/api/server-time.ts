/**
 * The time by the server's clock. Events are dated by it, and the machine of whoever looks at them may be minutes off, or
 * hours: "12 s ago" shall be true there too.
 */

/** A date in a header is cut to the second, and an answer is on its way for a while. */
const inexactMs = 3000;

let aheadMs = 0;

export const serverNow = (): number => Date.now() + aheadMs;

/** @param date the `Date` of an answer that came just now (RFC 9110, section 6.6.1) */
export function noteServerTime(date: string | null): void {
  const ahead = Date.parse(date ?? "") - Date.now();
  if (!Number.isNaN(ahead)) aheadMs = Math.abs(ahead) < inexactMs ? 0 : ahead;
}
