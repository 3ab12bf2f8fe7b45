/** A table with a row for each minute in which something happened; each row also has a histogram (`latency.ts`). */
export interface MinuteTable {
  readonly name: string;
  /** Columns that identify whose minutes they are. */
  readonly keys: readonly string[];
  readonly counts: readonly string[];
}

export const accountMinutes: MinuteTable = {
  name: "stat",
  keys: ["tenant_key"],
  counts: ["accepted", "delivered", "failed", "attempts"],
};

export const webhookMinutes: MinuteTable = {
  name: "webhook_stat",
  keys: ["tenant_key", "webhook_key"],
  counts: ["delivered", "failed", "attempts"],
};
