import type { Inbox } from "../../api/types.ts";

/**
 * The inbox with what has arrived since it was read. The server keeps the newest, so anything beyond their number is
 * gone: pushed out, or cleared.
 *
 * @param come what was read after the newest known delivery
 */
export function mergeInbox(known: Inbox, come: Inbox): Inbox {
  const fresh = new Set(come.deliveries.map(({ id }) => id));
  const all = [...come.deliveries, ...known.deliveries.filter(({ id }) => !fresh.has(id))];
  return { ...come, deliveries: all.slice(0, come.total) };
}
