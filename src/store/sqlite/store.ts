import { join } from "node:path";
import { drizzle } from "drizzle-orm/bun-sqlite";
import type { Clock } from "../../lib/clock.ts";
import { nextEventSeq } from "../../lib/id.ts";
import { createKeyedLock } from "../../lib/keyed-lock.ts";
import type { StartThread } from "../../lib/threads.ts";
import type { Vault } from "../../lib/vault.ts";
import { createChangeFeed } from "../change-feed.ts";
import type { Growth } from "../growth.ts";
import { everyJob } from "../jobs.ts";
import { createKeyCache } from "../key-cache.ts";
import { createMemoryLimits } from "../memory-limits.ts";
import { createMemoryLog } from "../memory-log.ts";
import { alone } from "../node-lease.ts";
import type { OpenedStore } from "../opened.ts";
import type { Store } from "../store.ts";
import { acceptanceVerbs } from "./acceptance.ts";
import { auditVerbs } from "./audit.ts";
import { createAuditLog } from "./audit-log.ts";
import { billingVerbs } from "./billing.ts";
import { createBillingRows } from "./billing-rows.ts";
import { createCancelledRuns } from "./cancelled-runs.ts";
import { chargeVerbs } from "./charges.ts";
import { createCheckpointer } from "./checkpointer.ts";
import type { Connection } from "./connection.ts";
import { credentialVerbs } from "./credentials.ts";
import { createDamageReport } from "./damage.ts";
import { deliveryVerbs } from "./deliveries.ts";
import { eventVerbs } from "./events.ts";
import { failingWebhookVerbs } from "./failing-webhooks.ts";
import { createFailureLedger } from "./failure-ledger.ts";
import { createFiling } from "./filing.ts";
import { createTenantHolder } from "./held-tenants.ts";
import { inboxVerbs } from "./inbox.ts";
import { orderVerbs } from "./lines.ts";
import { createLogWatch } from "./log-watch.ts";
import { mailVerbs } from "./mail.ts";
import { maintenanceVerbs } from "./maintenance.ts";
import { createMasterKeyCheck } from "./master-key.ts";
import { canCheckpointElsewhere, databaseFile, databaseFolder, databaseSizes, openDatabase } from "./open.ts";
import { createBooksFile } from "./open-books.ts";
import { createOwnership } from "./ownership.ts";
import type { Checkpoints } from "./pragma.ts";
import { createQueries } from "./queries.ts";
import { queueVerbs } from "./queue.ts";
import { createReader, createSameThreadReader } from "./reader.ts";
import { createReplayLedger } from "./replay-ledger.ts";
import { replayVerbs } from "./replays.ts";
import { retentionVerbs } from "./retention.ts";
import { createRowKeys } from "./row-keys.ts";
import { createSandboxBooks } from "./sandbox-books.ts";
import { sealingVerbs } from "./sealed.ts";
import { settlementVerbs } from "./settlements.ts";
import { createSpareRoom } from "./spare-room.ts";
import { statVerbs } from "./stats.ts";
import { tenantVerbs } from "./tenants.ts";
import { createWaitingRecords } from "./waiting-records.ts";
import { webhookUseVerbs } from "./webhook-use.ts";
import { webhookVerbs } from "./webhooks.ts";
import { createWriter, type WriterOptions } from "./writer.ts";

export interface SqliteOptions {
  dataDir: string;
  clock: Clock;
  /** Has to open what is sealed in the store; without one, that is not checked. */
  vault?: Vault;
  /** @default "own" */
  checkpoints?: Checkpoints;
  /** @default always */
  mayGrow?: Growth["mayGrow"];
  onCommit?: WriterOptions["onCommit"];
  onStandstill?: WriterOptions["onStandstill"];
  onFailure?: WriterOptions["onFailure"];
  onAhead?: WriterOptions["onAhead"];
  warn?(message: string): void;
  /** Called with whatever the change listener threw. */
  onDefect?(error: unknown): void;
  /** Maximum number of pages in the database; tests use it to simulate a full disk. */
  maxPageCount?: number;
  /** Runs instead of the commit statement; tests use it to cause an I/O error. */
  commit?: WriterOptions["commit"];
  /** False: the writer does not pause between commits; for simulations. @default true */
  pauses?: boolean;
  /** False: long reads run on this thread too; for simulations, which have to be reproducible. @default true */
  secondThread?: boolean;
  /** Starts that thread. @default startWorker */
  startThread?: StartThread;
}

/** A store on the database in a folder, which is created if there is none. @throws StartupError with what to do */
export function openSqliteStore({
  dataDir,
  clock,
  vault,
  checkpoints = "own",
  mayGrow = () => true,
  onCommit,
  onStandstill,
  onFailure,
  onAhead,
  warn,
  onDefect,
  maxPageCount,
  commit,
  pauses = true,
  secondThread = true,
  startThread,
}: SqliteOptions): OpenedStore {
  const client = openDatabase({
    dataDir,
    checkpoints,
    ...(warn && { warn }),
    ...(vault && { vault }),
    ...(maxPageCount !== undefined && { maxPageCount }),
  });
  const masterKey = vault && createMasterKeyCheck(client, vault);
  const db = drizzle({ client });
  const queries = createQueries(db);
  const reader = secondThread
    ? createReader(join(dataDir, databaseFile), startThread)
    : createSameThreadReader(client, queries);
  const checkpointer =
    checkpoints === "own" && canCheckpointElsewhere(client) ? createCheckpointer(client, reader, onFailure) : null;
  const log = checkpoints === "external" ? createLogWatch(client, warn) : checkpointer;
  const reportDamage = createDamageReport(warn);
  const changes = createChangeFeed(onDefect);
  const writer = createWriter({
    client,
    clock,
    nextSeq: nextEventSeq,
    onChange(change) {
      keys.heed(change);
      changes.tell(change);
    },
    pauses,
    betweenBatches: () => log?.look(),
    onDamage: ({ message }) => reportDamage(`Something that a write needs (${message})`),
    ...(onCommit && { onCommit }),
    ...(onStandstill && { onStandstill }),
    ...(onFailure && { onFailure }),
    ...(onAhead && { onAhead }),
    ...(commit && { commit }),
  });
  const hold = createTenantHolder(client);
  const rowKeys = createRowKeys(client);
  const billing = createBillingRows(client);
  const connection: Connection = {
    client,
    db,
    writer,
    hold,
    rowKeys,
    ownership: createOwnership(),
    filing: createFiling({
      ...{ client, writer, clock, rowKeys, reportDamage },
      hasRoom: createSpareRoom(client, databaseFolder(dataDir), clock),
    }),
    billing,
    books: createBooksFile(client, hold, billing),
    audit: createAuditLog(client),
    queries,
    reader,
    reportDamage,
  };
  const ledger = createReplayLedger(client);
  const failures = createFailureLedger(client);
  const waiting = createWaitingRecords(connection, ledger, failures);
  const cancelledRuns = createCancelledRuns(connection, failures);
  const credentials = credentialVerbs(connection);
  const keys = createKeyCache(credentials.findApiKey);
  const store: Store = {
    ...tenantVerbs(connection),
    ...credentials,
    findApiKey: keys.findApiKey,
    ...billingVerbs(connection),
    ...chargeVerbs(connection),
    ...settlementVerbs(connection),
    ...webhookVerbs(connection),
    ...failingWebhookVerbs(connection),
    ...acceptanceVerbs(connection, failures, { mayGrow }),
    ...eventVerbs(connection, clock),
    ...queueVerbs(connection, waiting, cancelledRuns),
    ...deliveryVerbs(connection, ledger, failures, waiting, { mayGrow }),
    ...orderVerbs(connection),
    ...replayVerbs(connection, ledger, failures, { mayGrow }),
    ...cancelledRuns.verbs,
    ...statVerbs(connection),
    ...inboxVerbs(connection),
    ...auditVerbs(connection),
    ...mailVerbs(connection),
    ...maintenanceVerbs(connection, {
      checkpoints,
      ...(checkpointer && { emptyLog: checkpointer.empty }),
      ...(masterKey && { masterKey }),
    }),
    ...webhookUseVerbs(connection),
    ...retentionVerbs(connection, failures),
    ...sealingVerbs(connection),
    onChange: changes.onChange,
  };
  return {
    store,
    sandboxBooks: createSandboxBooks(connection),
    keptSecrets: masterKey?.kept() ?? {},
    limits: createMemoryLimits(clock),
    jobs: everyJob,
    streamLog: createMemoryLog(clock),
    lease: alone,
    billingLock: createKeyedLock(),
    sizes: () => databaseSizes(dataDir),
    oldestSnapshotSeconds: () => 0,
  };
}
