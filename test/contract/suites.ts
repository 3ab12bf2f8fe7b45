import type { StoreBackend } from "../support/store-backend.ts";
import { billingLockContract } from "./billing/billing-lock.ts";
import { booksContract } from "./billing/books.ts";
import { chargesContract } from "./billing/charges.ts";
import { sandboxBooksContract } from "./billing/sandbox-books.ts";
import { verificationsContract } from "./billing/verifications.ts";
import { limitsContract } from "./limits/limits.ts";
import { acceptanceContract } from "./store/acceptance.ts";
import { auditContract } from "./store/audit.ts";
import { changesContract } from "./store/changes.ts";
import { credentialsContract } from "./store/credentials.ts";
import { deliveriesContract } from "./store/deliveries.ts";
import { erasureContract } from "./store/erasure.ts";
import { eventTypesContract } from "./store/event-types.ts";
import { eventsContract } from "./store/events.ts";
import { failPendingContract } from "./store/fail-pending.ts";
import { failingWebhooksContract } from "./store/failing-webhooks.ts";
import { failuresContract } from "./store/failures.ts";
import { inboxContract } from "./store/inbox.ts";
import { listsContract } from "./store/lists.ts";
import { mailContract } from "./store/mail.ts";
import { maintenanceContract } from "./store/maintenance.ts";
import { meteringContract } from "./store/metering.ts";
import { orderContract } from "./store/order.ts";
import { ownershipContract } from "./store/ownership.ts";
import { replayCancelContract } from "./store/replay-cancel.ts";
import { replayFiltersContract } from "./store/replay-filters.ts";
import { replaysContract } from "./store/replays.ts";
import { retentionContract } from "./store/retention.ts";
import { sealedContract } from "./store/sealed.ts";
import { statsContract } from "./store/stats.ts";
import { tenantsContract } from "./store/tenants.ts";
import { throttleContract } from "./store/throttle.ts";
import { webhookHealthContract } from "./store/webhook-health.ts";
import { webhookRowsContract } from "./store/webhook-rows.ts";

/** What a backend of the store passes, all of it. */
export const suites: readonly ((backend: StoreBackend) => void)[] = [
  tenantsContract,
  credentialsContract,
  changesContract,
  acceptanceContract,
  eventsContract,
  eventTypesContract,
  throttleContract,
  deliveriesContract,
  orderContract,
  ownershipContract,
  replaysContract,
  replayFiltersContract,
  replayCancelContract,
  erasureContract,
  maintenanceContract,
  retentionContract,
  sealedContract,
  statsContract,
  webhookHealthContract,
  failingWebhooksContract,
  failuresContract,
  failPendingContract,
  webhookRowsContract,
  meteringContract,
  inboxContract,
  auditContract,
  mailContract,
  listsContract,
  verificationsContract,
  chargesContract,
  booksContract,
  sandboxBooksContract,
  limitsContract,
  billingLockContract,
];
