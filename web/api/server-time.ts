/**
 * The time by the server's clock. Events carry that time, and the viewer's machine may be minutes or hours off: "12 s
 * ago" must be right there too.
 */

/** A date in a header is truncated to the second, and a response takes a while to arrive. */
const inexactMs = 3000;

let aheadMs = 0;

export const serverNow = (): number => Date.now() + aheadMs;

/** @param date the `Date` of a response that arrived just now (RFC 9110, section 6.6.1) */
export function noteServerTime(date: string | null): void {
  const ahead = Date.parse(date ?? "") - Date.now();
  if (!Number.isNaN(ahead)) aheadMs = Math.abs(ahead) < inexactMs ? 0 : ahead;
}
