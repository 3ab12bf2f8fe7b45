import { hostname } from "node:os";
import type { Moment } from "../../domain/moment.ts";
import { type Clock, systemClock } from "../../lib/clock.ts";
import type { DatabaseTime } from "../../lib/database-clock.ts";
import type { Vault } from "../../lib/vault.ts";
import { createChangeFeed } from "../change-feed.ts";
import type { Growth } from "../growth.ts";
import { createKeyCache } from "../key-cache.ts";
import type { OpenedStore } from "../opened.ts";
import type { Store } from "../store.ts";
import { acceptanceVerbs } from "./acceptance.ts";
import { askTime } from "./ask-time.ts";
import { auditVerbs } from "./audit.ts";
import { billingVerbs } from "./billing.ts";
import { createBillingLock } from "./billing-lock.ts";
import { createCancelledRuns } from "./cancelled-runs.ts";
import { chargeVerbs } from "./charges.ts";
import type { Connection } from "./connection.ts";
import { credentialVerbs } from "./credentials.ts";
import { deliveryVerbs } from "./deliveries.ts";
import { erasureVerbs } from "./erasure.ts";
import { eventVerbs } from "./events.ts";
import { failingWebhookVerbs } from "./failing-webhooks.ts";
import { createKnownGroups } from "./failure-counts.ts";
import { failureVerbs } from "./failures.ts";
import { storageUnavailable } from "./faults.ts";
import { databaseBytes, oldestSnapshotSeconds } from "./figures.ts";
import { createGate } from "./gate.ts";
import { createHoldings } from "./holdings.ts";
import type { HotPaths } from "./hot-paths.ts";
import { inboxVerbs } from "./inbox.ts";
import { createKeptFigure, type KeptFigureOptions } from "./kept-figure.ts";
import { createKeptTenants } from "./kept-tenants.ts";
import { createLanes } from "./lanes.ts";
import { createLimits } from "./limits.ts";
import { orderVerbs } from "./lines.ts";
import { createListener } from "./listener.ts";
import { mailVerbs } from "./mail.ts";
import { maintenanceVerbs } from "./maintenance.ts";
import { createMasterKeyCheck } from "./master-key.ts";
import { migrate, migrations } from "./migrations.ts";
import { heedMoveMark, refuseEmpty } from "./move-mark.ts";
import { retireMarked } from "./nodes.ts";
import { createNumbers } from "./numbers.ts";
import { createOwnNode } from "./own-node.ts";
import { makePartitions } from "./partitions.ts";
import { byKeys } from "./planner.ts";
import { createPool, type Pool, type PoolOptions, statementTimeoutMs } from "./pool.ts";
import { queueVerbs } from "./queue.ts";
import { createQueueVacuum } from "./queue-vacuum.ts";
import { removalVerbs } from "./removed-webhooks.ts";
import { completeReplays } from "./replay-counts.ts";
import { replayVerbs } from "./replays.ts";
import { retentionVerbs } from "./retention.ts";
import { createSandboxBooks } from "./sandbox-books.ts";
import { sealingVerbs } from "./sealed.ts";
import { settlementVerbs } from "./settlements.ts";
import { createSlowReads } from "./slow-reads.ts";
import { checkServer, type StartCheckOptions } from "./start-check.ts";
import { statVerbs } from "./stats.ts";
import { createStreamLog, streamChannel } from "./stream-log.ts";
import { tenantVerbs } from "./tenants.ts";
import { createUnderWay } from "./under-way.ts";
import { untilAnswered } from "./until-answered.ts";
import { webhookUseVerbs } from "./webhook-use.ts";
import { webhookVerbs } from "./webhooks.ts";

export interface PostgresOptions {
  url: string;
  /** The time that events and records carry. */
  clock: Clock;
  /** The clock for leases, deadlines and pauses. @default the machine's */
  machineClock?: Clock;
  /** Must be able to open what is sealed in the store; without a vault this is not checked. */
  vault?: Vault;
  /** Ids of the master keys that this server has at the moment; see `KeyOfAll`. */
  keys?(): string;
  /** @default always */
  mayGrow?: Growth["mayGrow"];
  /** The name by which people know this node. @default the machine's name */
  nodeName?: string;
  /** Where the data of this server was moved: a database that has nothing is not that place. */
  movedTo?: string | null;
  /** The mark of this node's previous life, if that is known to have ended: what it owned is freed immediately. */
  lastNode?: string | null;
  /** Called with the mark of each life, before it owns anything. */
  noteNode?(mark: string): void;
  onCommit?(commit: { jobs: number; durationMs: number }): void;
  /** Called with the database's time, before anything is stamped with it and at each heartbeat. */
  onTime?(time: DatabaseTime): void;
  /** Called for each heartbeat that the database has confirmed. */
  onBeat?(): void;
  onFailure?(failure: { operation: string; error: unknown }): void;
  /** Called with how far the times of ids are ahead of the clock; otherwise 0. */
  onAhead?(aheadMs: number): void;
  warn?(message: string): void;
  /** Ends the wait for the database before it is open: the program is to end. */
  signal?: AbortSignal;
  /** Called with what the listener of changes threw. */
  onDefect?(error: unknown): void;
  durability?: StartCheckOptions["durability"];
}

/** Connections for what lanes do not write. */
const poolSize = 4;

/** How many of those transactions may use: reads go on, however many transactions wait for each other's locks. */
const transactionsAtOnce = 3;

/** Further connections, for what every delivery may also need. */
const hotPoolSize = 2;

/** One more, so that no heartbeat waits for slow reads: after three of those a node may not deliver. */
const leasePoolSize = 1;

/** How long a statement that reads the whole queue may take: its vacuum, and the rescue of what a dead node owned. */
const upkeepTimeoutMs = 10 * 60_000;

const patient = {
  size: 1,
  statementTimeoutMs: upkeepTimeoutMs,
  // Between statements others do not wait for longer than usual: this process may be gone.
  settings: { idle_in_transaction_session_timeout: `${statementTimeoutMs}` },
} satisfies Partial<PoolOptions>;

/** How old the metrics about the database may be. */
const sizeMaxAgeMs = 60_000;
const snapshotMaxAgeMs = 1_000;

/** One accepts, one settles, and the row of the third says whether the node may own (`ownership.ts`). */
const laneCount = 3;

/**
 * Opens a node on a database, and creates the schema if there is none.
 * @throws StartupError with what to do; `shutting_down` when the signal came first
 */
export async function openPostgresStore({
  url,
  clock,
  machineClock = systemClock,
  vault,
  keys: keyIds = () => "",
  nodeName = hostname(),
  movedTo = null,
  lastNode = null,
  noteNode,
  mayGrow = () => true,
  onCommit,
  onAhead,
  onTime,
  onBeat,
  onFailure,
  onDefect,
  durability,
  signal,
}: PostgresOptions): Promise<OpenedStore> {
  let isClosing = false;
  // Connections that end with the store are not failures of it.
  const tellFailure = (failure: { operation: string; error: unknown }) => {
    if (!isClosing) onFailure?.(failure);
  };
  const failed = (operation: string) => (error: unknown) => tellFailure({ operation, error });
  const poolOf = (options: Pick<PoolOptions, "size" | "settings" | "statementTimeoutMs">, operation = "statement") =>
    createPool({ url, clock: machineClock, onFailure: failed(operation), ...options });
  const patience = { url, clock: machineClock, onFailure: failed("start"), ...(signal && { signal }) };
  await checkServer({ ...patience, ...(durability && { durability }) });
  const pool = poolOf({ size: poolSize });
  const masterKey = vault && createMasterKeyCheck(vault);
  let lastSeq: number;
  try {
    lastSeq = await untilAnswered(patience, prepare);
  } catch (error) {
    await pool.close();
    throw error;
  }

  const feed = createChangeFeed(onDefect);
  const moment = createMoments(clock);
  const kept = createKeptTenants(pool, clock.now);
  const keys = createKeyCache((hash) => credentials.findApiKey(hash));
  const underWay = createUnderWay();
  const leasePool = poolOf({ size: leasePoolSize }, "heartbeat");
  const node = createOwnNode({
    pool,
    leasePool,
    openPool: () => poolOf(patient, "rescue"),
    clock,
    machineClock,
    patience,
    moment,
    description: {
      ...{ name: nodeName, schema: migrations.length, lanes: laneCount },
      ...(masterKey && { admit: masterKey.admit }),
    },
    keys: keyIds,
    writesAtOnce: transactionsAtOnce,
    onLost() {
      kept.forgetAll();
      keys.forgetAll();
      holdings.forgetAll();
    },
    onJoined(joined) {
      noteNode?.(joined.mark);
      lanes.beginAt(joined);
      // It may have missed that change.
      feed.tell({ kind: "master_key_changed" });
    },
    async heed(changes) {
      for (const change of changes) {
        if ("tenantKey" in change) kept.forget(change.tenantKey);
        keys.heed(change);
      }
      // Decisions based on the state before, which are still on their way to whoever starts attempts, come before the
      // changes.
      await Promise.all([lanes.underWay(), underWay.ended()]);
      await new Promise<void>((resolve) => setImmediate(resolve));
      for (const change of changes) feed.tell(change);
    },
    onTime(time) {
      onTime?.(time);
      onBeat?.();
    },
    onFailure: tellFailure,
  });
  const numbers = createNumbers({ lastSeq, now: clock.now, slot: () => ownNode().slot });
  const hotPool = poolOf({ size: hotPoolSize, settings: byKeys });
  const groups = createKnownGroups(hotPool, machineClock.monotonicMs);
  const lanes = createLanes({
    url,
    clock: machineClock,
    kept,
    numbers,
    groups,
    moment,
    mayGrow,
    onCommit(commit) {
      onCommit?.(commit);
      onAhead?.(numbers.aheadMs());
    },
    onFenced: node.suspect,
    onEnded: (replays) => completeReplays(pool, replays, clock.now()).catch(failed("replay")),
    onFailure: failed("statement"),
  });
  const holdings = createHoldings({
    pool,
    clock: machineClock,
    node: node.current,
    underWay,
    lanes,
    onUnowned: node.tellUnowned,
    onFailure: failed("comparison"),
  });
  // If it cannot be done now, it is done when the lease has run out.
  if (lastNode !== null) await retireMarked(pool, lastNode).catch(failed("rescue"));
  await node.join();
  const figure = (options: Pick<KeptFigureOptions, "read" | "maxAgeMs">) => {
    const kept = createKeptFigure({ clock: machineClock, onFailure: failed("figure"), ...options });
    // Makes an answer available for the first time it is asked for.
    kept.latest();
    return kept;
  };
  const size = figure({ read: () => databaseBytes(pool), maxAgeMs: sizeMaxAgeMs });
  const oldestSnapshot = figure({ read: () => oldestSnapshotSeconds(pool), maxAgeMs: snapshotMaxAgeMs });
  const streamLog = createStreamLog({
    pool,
    watchers: node.watchers,
    clock: machineClock,
    onFailure: failed("stream"),
  });
  const listener = createListener(patience);
  let keptSecrets: OpenedStore["keptSecrets"] = {};
  try {
    // The first event must not be the one to find out that there is no connection left.
    await untilAnswered(patience, lanes.reach);
    await node.listen(listener);
    await listener.listen(streamChannel, streamLog.hear, () => {});
    if (masterKey) keptSecrets = await untilAnswered(patience, () => masterKey.kept(pool));
  } catch (error) {
    // Otherwise the others would wait for this node until its lease has run out.
    await node.leave().catch(failed("heartbeat"));
    throw error;
  }

  const connection: Connection = {
    pool,
    slowReads: createSlowReads(),
    writes: node.writes,
    numbers,
    clock,
    node: ownNode,
    isNode: (incarnation) => node.current()?.incarnation === incarnation,
  };
  const vacuum = createQueueVacuum({
    pool,
    openPool: () => poolOf(patient, "upkeep"),
    clock: machineClock,
    onFailure: failed("upkeep"),
  });
  const cancelledRuns = createCancelledRuns(connection, groups);
  const hot: HotPaths = { pool: hotPool, lanes, kept, groups, underWay, holdings };
  const gate = createGate();
  const credentials = credentialVerbs(connection);
  const verbs = gate.before({
    ...tenantVerbs(connection),
    ...acceptanceVerbs(connection, { mayGrow }, hot),
    ...queueVerbs(connection, hot, cancelledRuns),
    ...deliveryVerbs(connection, { mayGrow }, hot),
    ...removalVerbs(connection, hot),
    ...credentials,
    findApiKey: (hash: Uint8Array) => (node.mayTrust() ? keys : credentials).findApiKey(hash),
    ...orderVerbs(connection),
    ...webhookVerbs(connection),
    ...failingWebhookVerbs(connection),
    ...eventVerbs(connection),
    ...failureVerbs(connection),
    ...statVerbs(connection),
    ...inboxVerbs(connection),
    ...auditVerbs(connection),
    ...mailVerbs(connection),
    ...billingVerbs(connection),
    ...chargeVerbs(connection),
    ...settlementVerbs(connection),
    ...replayVerbs(connection, { mayGrow }),
    returnCancelled: cancelledRuns.returnCancelled,
    ...webhookUseVerbs(connection),
    ...retentionVerbs(connection, size.latest),
    ...sealingVerbs(connection),
    ...erasureVerbs(connection),
    ...maintenanceVerbs(connection, { clock: machineClock, vacuum, lanes }, masterKey),
  });
  let closing: Promise<void> | null = null;
  const store: Store = {
    ...verbs,
    onChange: feed.onChange,
    oldestWaitingWriteMs: () => Math.max(node.writes.lagMs(), lanes.lagMs()),
    close() {
      closing ??= end();
      return closing;
    },
  };

  return {
    store,
    sandboxBooks: createSandboxBooks(connection),
    limits: createLimits({ pool, clock }),
    jobs: node.jobs,
    streamLog,
    lease: node.lease,
    billingLock: createBillingLock({ pool, clock: machineClock, node: ownNode, onFailure: failed("billing lock") }),
    keptSecrets,
    // The log is shared by all databases of the server, and only its administrators may see its size.
    sizes: () => ({ databaseBytes: size.latest(), logBytes: 0 }),
    oldestSnapshotSeconds: oldestSnapshot.latest,
  };

  /**
   * Prepares everything that must exist before this process is a node. It may be repeated. @returns the number of the last
   * event
   */
  async function prepare(): Promise<number> {
    await heedMoveMark(pool);
    if (movedTo !== null) await refuseEmpty(pool, movedTo);
    await masterKey?.verify(pool);
    await migrate(patience);
    await masterKey?.remember(pool);
    // The first answer has to wait for the connection.
    for (const _ of ["slow", "quick"]) onTime?.(await askTime(pool, machineClock));
    await makePartitions(pool, "month", clock.now());
    return lastSeqOf(pool);
  }

  async function end(): Promise<void> {
    // The verbs that the gate waits for may wait for a lane.
    lanes.hurry();
    await Promise.all([vacuum.close(), gate.close()]);
    await holdings.close();
    await node.writes.close();
    await lanes.close();
    await streamLog.close();
    await node.leave();
    await Promise.all([size.close(), oldestSnapshot.close()]);
    await listener.close();
    isClosing = true;
    await Promise.all([pool.close(), leasePool.close(), hotPool.close()]);
  }

  function ownNode() {
    const current = node.current();
    if (current === null) throw storageUnavailable("passing");
    return current;
  }
}

async function lastSeqOf(pool: Pool): Promise<number> {
  const [row] = await pool.read<{ last: number | null }>("select max(seq)::float8 as last from event");
  return row?.last ?? 0;
}

/** The moments of this process, in order even when its clock steps back. */
function createMoments(clock: Clock): () => Moment {
  let latest = 0;
  return () => {
    const now = clock.now();
    latest = Math.max(latest, now);
    return { now, orderedNow: latest };
  };
}
