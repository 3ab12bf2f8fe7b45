import type { Cursor } from "../../src/store/store.ts";

/** The whole of a list, in steps of so many bytes. */
export async function readAll<Entry>(list: Cursor<Entry>, bytes = 2 ** 20): Promise<Entry[]> {
  const entries: Entry[] = [];
  for (;;) {
    const step = await list.next(bytes);
    if (step.length === 0) return entries;
    entries.push(...step);
  }
}
