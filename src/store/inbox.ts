import type { InboxAnswer, InboxDelivery, ListedDelivery } from "../domain/inbox.ts";
import type { Tenant } from "../domain/tenant.ts";
import type { Cursor } from "./cursor.ts";

/** Part of a list whose newest entry comes first. */
export interface InboxRange {
  readonly limit: number;
  /** Id of a delivery: only those that came after it. One that is no longer kept counts as older than all that are. */
  readonly after?: string;
  /** Id of a delivery: only those that came before it. */
  readonly before?: string;
}

/** The inbox that every account has (rules, section 9). The error contract is that of `Store`. */
export interface InboxVerbs {
  /** Null when the inbox has never been told how to answer. */
  inboxAnswer(tenantKey: number): Promise<InboxAnswer | null>;
  setInboxAnswer(tenantKey: number, answer: InboxAnswer): Promise<void>;
  /** Stores a delivery as the newest one and removes all but the newest `kept`. Returns the tenant as it is now. */
  keepInboxDelivery(tenantKey: number, delivery: InboxDelivery, kept: number): Promise<Tenant>;
  /** Newest first; `total` counts all that are kept. */
  inboxDeliveries(tenantKey: number, range: InboxRange): Promise<{ deliveries: Cursor<ListedDelivery>; total: number }>;
  emptyInbox(tenantKey: number): Promise<void>;
}
