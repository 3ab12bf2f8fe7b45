import type { Database } from "bun:sqlite";

/**
 * Keys of the rows that every event may add. They are counted here rather than by SQLite, because no key may be used twice
 * while the process lives: an attempt in progress holds the key of its delivery, and later that of its log entry, and a list
 * in progress those of its rows, at a time when the rows may have been erased. `autoincrement` promises the same, but writes one more page in every
 * commit.
 */
export interface RowKeys {
  nextDelivery(): number;
  /** No delivery has a higher key. */
  lastDelivery(): number;
  nextAttempt(): number;
  nextInboxDelivery(): number;
}

export function createRowKeys(client: Database): RowKeys {
  const highest = (table: "delivery" | "attempt" | "inbox_delivery") =>
    client.query<{ key: number | null }, []>(`select max(key) as key from ${table}`).get()?.key ?? 0;
  const filedTo = client.query<{ key: number }, []>("select filed_to as key from lane where id = 1").get()?.key ?? 0;
  // Above what has been erased, too: after a crash, a record with a key up to `filed_to` would pass for filed and be in no list.
  let delivery = Math.max(highest("delivery"), filedTo);
  let attempt = highest("attempt");
  let inboxDelivery = highest("inbox_delivery");
  return {
    nextDelivery() {
      delivery += 1;
      return delivery;
    },
    lastDelivery: () => delivery,
    nextAttempt() {
      attempt += 1;
      return attempt;
    },
    nextInboxDelivery() {
      inboxDelivery += 1;
      return inboxDelivery;
    },
  };
}
