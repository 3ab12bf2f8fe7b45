import { billingLockContract } from "../contract/billing/billing-lock.ts";
import { booksContract } from "../contract/billing/books.ts";
import { chargesContract } from "../contract/billing/charges.ts";
import { sandboxBooksContract } from "../contract/billing/sandbox-books.ts";
import { verificationsContract } from "../contract/billing/verifications.ts";
import { limitsContract } from "../contract/limits/limits.ts";
import { acceptanceContract } from "../contract/store/acceptance.ts";
import { changesContract } from "../contract/store/changes.ts";
import { credentialsContract } from "../contract/store/credentials.ts";
import { deliveriesContract } from "../contract/store/deliveries.ts";
import { erasureContract } from "../contract/store/erasure.ts";
import { eventsContract } from "../contract/store/events.ts";
import { inboxContract } from "../contract/store/inbox.ts";
import { listsContract } from "../contract/store/lists.ts";
import { maintenanceContract } from "../contract/store/maintenance.ts";
import { meteringContract } from "../contract/store/metering.ts";
import { ownershipContract } from "../contract/store/ownership.ts";
import { replaysContract } from "../contract/store/replays.ts";
import { statsContract } from "../contract/store/stats.ts";
import { tenantsContract } from "../contract/store/tenants.ts";
import { webhookHealthContract } from "../contract/store/webhook-health.ts";
import { webhookRowsContract } from "../contract/store/webhook-rows.ts";
import { describeWithPostgres } from "../support/postgres.ts";
import { postgresBackend } from "../support/postgres-backend.ts";
import { sqliteBackend } from "../support/sqlite-backend.ts";
import type { StoreBackend } from "../support/store-backend.ts";

const suites: readonly ((backend: StoreBackend) => void)[] = [
  tenantsContract,
  credentialsContract,
  changesContract,
  acceptanceContract,
  eventsContract,
  deliveriesContract,
  ownershipContract,
  replaysContract,
  erasureContract,
  maintenanceContract,
  statsContract,
  webhookHealthContract,
  webhookRowsContract,
  meteringContract,
  inboxContract,
  listsContract,
  verificationsContract,
  chargesContract,
  booksContract,
  sandboxBooksContract,
  limitsContract,
  billingLockContract,
];

for (const suite of suites) suite(sqliteBackend);

describeWithPostgres("with PostgreSQL", () => {
  for (const suite of suites) suite(postgresBackend);
});
