import { statSync } from "node:fs";
import { join } from "node:path";
import { drizzle } from "drizzle-orm/bun-sqlite";
import type { Clock } from "../lib/clock.ts";
import { nextEventSeq } from "../lib/id.ts";
import type { Vault } from "../lib/vault.ts";
import { billingVerbs } from "./sqlite/billing.ts";
import { createBillingRows } from "./sqlite/billing-rows.ts";
import { chargeVerbs } from "./sqlite/charges.ts";
import { createCheckpointer } from "./sqlite/checkpointer.ts";
import type { Connection } from "./sqlite/connection.ts";
import { credentialVerbs } from "./sqlite/credentials.ts";
import { createDamageReport } from "./sqlite/damage.ts";
import { deliveryVerbs } from "./sqlite/deliveries.ts";
import { eventVerbs } from "./sqlite/events.ts";
import { inboxVerbs } from "./sqlite/inbox.ts";
import { createLane, type LaneOptions } from "./sqlite/lane.ts";
import { maintenanceVerbs } from "./sqlite/maintenance.ts";
import { createMasterKeyCheck } from "./sqlite/master-key.ts";
import { canCheckpointElsewhere, databaseFile, openDatabase } from "./sqlite/open.ts";
import { createQueries } from "./sqlite/queries.ts";
import { createReader, createSameThreadReader } from "./sqlite/reader.ts";
import { createReplayLedger } from "./sqlite/replay-ledger.ts";
import { replayVerbs } from "./sqlite/replays.ts";
import { createRowKeys } from "./sqlite/row-keys.ts";
import { sandboxVerbs } from "./sqlite/sandbox.ts";
import { settlementVerbs } from "./sqlite/settlements.ts";
import { statVerbs } from "./sqlite/stats.ts";
import { createTenantPages } from "./sqlite/tenant-page.ts";
import { tenantVerbs } from "./sqlite/tenants.ts";
import { upgradeDatabase } from "./sqlite/upgrade.ts";
import { webhookUseVerbs } from "./sqlite/webhook-use.ts";
import { webhookVerbs } from "./sqlite/webhooks.ts";
import type { Store } from "./store.ts";

export interface StoreOptions {
  dataDir: string;
  clock: Clock;
  /** Has to open what is sealed in the store; without one that is not looked at. */
  vault?: Vault;
  /** False when the disk is below its floor: then no more events are accepted. */
  hasRoom?(): boolean;
  onCommit?: LaneOptions["onCommit"];
  onFailure?: LaneOptions["onFailure"];
  onAhead?: LaneOptions["onAhead"];
  warn?(message: string): void;
  /** Most pages of the database; tests make a full disk with it. */
  maxPageCount?: number;
  /** Runs instead of the commit statement; tests make an I/O error with it. */
  commit?: LaneOptions["commit"];
  /** False: the lane does not pause between commits; for simulations. @default true */
  rests?: boolean;
  /** False: long reads run on this thread too; for simulations, which have to repeat. @default true */
  secondThread?: boolean;
}

/** How much room the store takes in a folder. What is not there takes none. */
export function storageSizes(dataDir: string): { databaseBytes: number; logBytes: number } {
  const sizeOf = (name: string) => statSync(join(dataDir, name), { throwIfNoEntry: false })?.size ?? 0;
  return { databaseBytes: sizeOf(databaseFile), logBytes: sizeOf(`${databaseFile}-wal`) };
}

export type { UpgradeOptions, UpgradeProgress } from "./sqlite/upgrade.ts";

/**
 * Brings an earlier store to this program's form beforehand, watched and in little memory; `openStore` would do it too, but
 * holds the event loop until it is done.
 */
export const upgradeStore = upgradeDatabase;

/** Opens the store in a folder, or makes a new one. @throws StartupError with what to do */
export function openStore({
  dataDir,
  clock,
  vault,
  hasRoom = () => true,
  onCommit,
  onFailure,
  onAhead,
  warn,
  maxPageCount,
  commit,
  rests = true,
  secondThread = true,
}: StoreOptions): Store {
  const client = openDatabase({
    dataDir,
    ...(warn && { warn }),
    ...(vault && { vault }),
    ...(maxPageCount !== undefined && { maxPageCount }),
  });
  const db = drizzle({ client });
  const queries = createQueries(db);
  const reader = secondThread ? createReader(join(dataDir, databaseFile)) : createSameThreadReader(client, queries);
  const checkpointer = canCheckpointElsewhere(client) ? createCheckpointer(client, reader, onFailure) : null;
  const reportDamage = createDamageReport(warn);
  const lane = createLane({
    client,
    clock,
    nextSeq: nextEventSeq,
    rests,
    betweenBatches: () => checkpointer?.look(),
    onDamage: ({ message }) => reportDamage(`Something that a write needs (${message})`),
    ...(onCommit && { onCommit }),
    ...(onFailure && { onFailure }),
    ...(onAhead && { onAhead }),
    ...(commit && { commit }),
  });
  const connection: Connection = {
    client,
    db,
    lane,
    pages: createTenantPages(client),
    rowKeys: createRowKeys(client),
    billing: createBillingRows(client),
    queries,
    reader,
    reportDamage,
  };
  const ledger = createReplayLedger(client);
  return {
    ...tenantVerbs(connection),
    ...credentialVerbs(connection),
    ...webhookVerbs(connection),
    ...eventVerbs(connection, { hasRoom }),
    ...deliveryVerbs(connection, ledger, { hasRoom }),
    ...replayVerbs(connection, ledger, { hasRoom }),
    ...statVerbs(connection),
    ...inboxVerbs(connection),
    ...billingVerbs(connection),
    ...chargeVerbs(connection),
    ...settlementVerbs(connection),
    ...maintenanceVerbs(connection, vault && createMasterKeyCheck(client, vault)),
    ...webhookUseVerbs(connection),
    ...sandboxVerbs(connection),
  };
}
