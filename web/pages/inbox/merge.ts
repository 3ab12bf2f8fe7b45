import type { Inbox } from "../../api/types.ts";

/**
 * The inbox with what has come since it was read. The server keeps the newest, so what stands beyond their number is gone:
 * pushed out, or emptied.
 *
 * @param come what was read after the newest that was known
 */
export function mergeInbox(known: Inbox, come: Inbox): Inbox {
  const fresh = new Set(come.deliveries.map(({ id }) => id));
  const all = [...come.deliveries, ...known.deliveries.filter(({ id }) => !fresh.has(id))];
  return { ...come, deliveries: all.slice(0, come.total) };
}
