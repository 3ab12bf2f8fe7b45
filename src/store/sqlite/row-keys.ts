import type { Database } from "bun:sqlite";

/**
 * Keys of the rows that every event adds. They are counted here rather than by SQLite, because no key may be used twice
 * while the process lives: an attempt in progress holds the key of its delivery, and later that of its log entry, at a time
 * when the rows may have been erased with their tenant. `autoincrement` promises the same, but writes one more page in every
 * commit.
 */
export interface RowKeys {
  nextDelivery(): number;
  nextAttempt(): number;
}

export function createRowKeys(client: Database): RowKeys {
  const highest = (table: "delivery" | "attempt") =>
    client.query<{ key: number | null }, []>(`select max(key) as key from ${table}`).get()?.key ?? 0;
  let delivery = highest("delivery");
  let attempt = highest("attempt");
  return {
    nextDelivery() {
      delivery += 1;
      return delivery;
    },
    nextAttempt() {
      attempt += 1;
      return attempt;
    },
  };
}
