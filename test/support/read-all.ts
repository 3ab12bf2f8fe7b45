import type { Attempt } from "../../src/domain/delivery.ts";
import type { Cursor } from "../../src/store/cursor.ts";
import type { Store } from "../../src/store/store.ts";

/** A whole list, read in steps of this many bytes. */
export async function readAll<Entry>(list: Cursor<Entry>, bytes = 2 ** 20): Promise<Entry[]> {
  const entries: Entry[] = [];
  for (;;) {
    const step = await list.next(bytes);
    if (step.length === 0) return entries;
    entries.push(...step);
  }
}

/** The stored attempts of an event, oldest first; none for an event that the tenant does not have. */
export async function readAttempts(
  store: Pick<Store, "attempts">,
  tenantKey: number,
  eventId: string,
): Promise<Attempt[]> {
  const found = await store.attempts(tenantKey, eventId, { offset: 0, limit: 1000 });
  return found ? readAll(found.attempts) : [];
}
