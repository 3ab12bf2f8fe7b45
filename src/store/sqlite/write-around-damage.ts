import { isStorageDamaged } from "../unless-damaged.ts";
import type { WriteTransaction } from "./transaction.ts";
import type { Pace, Writer } from "./writer.ts";

/**
 * Writes items in one job. If that runs into damage, they are written in halves, and halves of those, so that only the items on
 * damaged pages are left out; they are reported. Halves get commits of their own, since a job that fails costs its neighbours
 * their shared commit.
 *
 * @returns what each job returned
 */
export async function writeAroundDamage<Item, Result>(
  writer: Pick<Writer, "submit">,
  items: readonly Item[],
  write: (tx: WriteTransaction, items: readonly Item[]) => Result,
  report: (item: Item) => void,
  pace: Pace = "soon",
): Promise<Result[]> {
  try {
    return [await writer.submit<Result>((tx) => write(tx, items), pace)];
  } catch (error) {
    if (!isStorageDamaged(error)) throw error;
  }
  if (items.length <= 1) {
    items.forEach(report);
    return [];
  }
  const middle = items.length >> 1;
  const results: Result[] = [];
  for (const half of [items.slice(0, middle), items.slice(middle)]) {
    results.push(...(await writeAroundDamage(writer, half, write, report, "heavy")));
  }
  return results;
}
