import { signal } from "@preact/signals";

/**
 * The time by the server's clock. Events carry that time, and the viewer's machine may be minutes or hours off: "12 s
 * ago" must be right there too.
 */

/** A date in a header is truncated to the second, and a response takes a while to arrive. */
const inexactMs = 3000;

/** Null: nothing was heard from the server yet. */
let aheadMs: number | null = null;

/**
 * Rises when the first response shows this machine's clock to be wrong: whatever was requested by it is read again. Only
 * then, because servers whose clocks disagree would otherwise have everything read again for ever.
 */
export const corrections = signal(0);

export const serverNow = (): number => Date.now() + (aheadMs ?? 0);

/** @param date the `Date` of a response that arrived just now (RFC 9110, section 6.6.1) */
export function noteServerTime(date: string | null): void {
  const ahead = Date.parse(date ?? "") - Date.now();
  if (Number.isNaN(ahead)) return;
  const isFirst = aheadMs === null;
  aheadMs = Math.abs(ahead) < inexactMs ? 0 : ahead;
  if (isFirst && aheadMs !== 0) corrections.value = 1;
}
