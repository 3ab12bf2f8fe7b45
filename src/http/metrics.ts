import { Counter, Gauge, Histogram, Registry } from "prom-client";
import { isUnavailable } from "../domain/errors.ts";
import type { FailureCode, NoResponseCause } from "../domain/failure.ts";
import { type Pausable, pausable } from "../domain/pauses.ts";
import type { Clock } from "../lib/clock.ts";
import type { Descriptors } from "../lib/descriptors.ts";
import { type StorageErrorClass, storageErrorClasses } from "../maintenance/storage-watch.ts";
import type { QueueDepth } from "../store/deliveries.ts";
import type { NodeLease } from "../store/node-lease.ts";
import { commit, version } from "../version.ts";
import type { ErasedEndpoint } from "./endpoint.ts";
import { refusalCodes } from "./refusal-codes.ts";

export interface MetricSources {
  isPaused(what: Pausable): boolean;
  queueDepth(): Promise<QueueDepth>;
  stored(): Promise<{ events: number; usedBytes: number }>;
  clock: Clock;
  openStreams(): number;
  inFlight(): number;
  disk(): { freeBytes: number; floorBytes: number };
  storage(): { databaseBytes: number; logBytes: number };
  oldestSnapshotSeconds(): number;
  descriptors(): Descriptors | null;
  /** Null: this server makes no backups. */
  backups(): BackupFigures | null;
  /** The name by which people know this server. */
  nodeName: string;
  lease(): Pick<NodeLease, "living" | "sinceBeatMs">;
}

export interface BackupFigures {
  /** When the newest backup known to be intact was made. */
  readonly verifiedAt: number | null;
  /** Of the latest backup. */
  readonly hasFailed: boolean;
  readonly bytes: number | null;
  readonly tookMs: number | null;
  /** Since the start. */
  readonly failures: number;
  readonly isUnderWay: boolean;
}

/**
 * Why an attempt was not a success: the status that came back, or else the code of its failure. An interrupted one is not
 * reported.
 */
type AttemptErrorClass = Exclude<NoResponseCause, "interrupted"> | "http_3xx" | "http_4xx" | "http_429" | "http_5xx";

const attemptErrorClasses: Readonly<Record<AttemptErrorClass, true>> = {
  http_3xx: true,
  http_4xx: true,
  http_429: true,
  http_5xx: true,
  timeout: true,
  dns_failed: true,
  connection_refused: true,
  host_unreachable: true,
  connection_reset: true,
  tls_failed: true,
  protocol_error: true,
  address_not_public: true,
  proxy_failed: true,
};

function classOf(code: FailureCode, status: number | null): string {
  if (status === null) return code;
  if (status === 429) return "http_429";
  if (status >= 500) return "http_5xx";
  return status >= 400 ? "http_4xx" : "http_3xx";
}

/** Whose credential was wrong. */
export type LoginKind = "account" | "operator";

/** What the operator can see, in the Prometheus text format. No label contains a tenant, a URL or a secret. */
export function createMetrics(sources: MetricSources) {
  const registers = [new Registry()];
  const registry = registers[0] as Registry;

  const accepted = new Counter({
    name: "postrider_events_accepted_total",
    help: "Events accepted and stored.",
    registers,
  });
  const attempts = new Counter({
    name: "postrider_delivery_attempts_total",
    help: "Delivery attempts by outcome: delivered, retry, failed.",
    labelNames: ["outcome"],
    registers,
  });
  const attemptSeconds = new Histogram({
    name: "postrider_delivery_attempt_duration_seconds",
    help: "Time from the start of an attempt to the complete response head.",
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    registers,
  });
  const deliverySeconds = new Histogram({
    name: "postrider_delivery_latency_seconds",
    help: "Time from the acceptance of an event to its acknowledged delivery, first runs only.",
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 30, 300, 3600, 36_000],
    registers,
  });
  const commitJobs = new Histogram({
    name: "postrider_commit_size",
    help: "Writes per commit.",
    buckets: [1, 2, 4, 8, 16, 32, 64, 128, 256, 512],
    registers,
  });
  const commitSeconds = new Histogram({
    name: "postrider_commit_duration_seconds",
    help: "Duration of a commit, including the sync to disk.",
    buckets: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1],
    registers,
  });
  const requests = new Counter({
    name: "postrider_http_requests_total",
    help: "HTTP requests by route and status.",
    labelNames: ["method", "route", "status"],
    registers,
  });
  const connections = new Counter({
    name: "postrider_delivery_connections_total",
    help: "Delivery attempts by connection: reused or new.",
    labelNames: ["connection"],
    registers,
  });
  const attemptErrors = new Counter({
    name: "postrider_delivery_attempt_errors_total",
    help: "Unsuccessful delivery attempts, by response status or reason for no response.",
    labelNames: ["class"],
    registers,
  });
  const refusals = new Counter({
    name: "postrider_refusals_total",
    help: "Error responses by code.",
    labelNames: ["code"],
    registers,
  });
  const failedLogins = new Counter({
    name: "postrider_failed_logins_total",
    help: "Logins with a wrong password, and calls with a wrong operator or metrics token.",
    labelNames: ["kind"],
    registers,
  });
  const storageErrors = new Counter({
    name: "postrider_storage_errors_total",
    help: "Failed writes and checkpoints, and failed calls to a database server, by class of error.",
    labelNames: ["class"],
    registers,
  });
  const leftOutLines = new Counter({
    name: "postrider_log_lines_suppressed_total",
    help: "Log lines suppressed because there were too many of their kind.",
    registers,
  });
  const mails = new Counter({
    name: "postrider_mails_sent_total",
    help: "Mails that the SMTP server has taken.",
    registers,
  });
  const failedMails = new Counter({
    name: "postrider_mail_failures_total",
    help: "Attempts to send a mail that the SMTP server did not take.",
    registers,
  });
  const unknownLookUps = new Counter({
    name: "postrider_payment_lookups_unknown_total",
    help: "Payment look-ups at the processor that gave no conclusive answer.",
    registers,
  });
  const shedConnections = new Counter({
    name: "postrider_connections_shed_total",
    help: "Client connections closed because file descriptors ran short.",
    registers,
  });
  const pending = new Gauge({ name: "postrider_queue_depth", help: "Deliveries not finished yet.", registers });
  const oldest = new Gauge({
    name: "postrider_queue_oldest_due_seconds",
    help: "How long the longest-waiting delivery has been due; 0 when none is due.",
    registers,
  });
  const inFlight = new Gauge({ name: "postrider_delivery_in_flight", help: "Attempts in flight.", registers });
  const paused = new Gauge({
    name: "postrider_paused",
    help: "1 while paused until postrider resume: deliveries, charges.",
    labelNames: ["what"],
    registers,
  });
  const streams = new Gauge({ name: "postrider_open_streams", help: "Open dashboard streams.", registers });
  const resident = new Gauge({ name: "process_resident_memory_bytes", help: "Resident memory.", registers });
  const gauge = (name: string, help: string) => new Gauge({ name, help, registers });
  gauge("process_start_time_seconds", "When the process started, in Unix time.").set(sources.clock.now() / 1000);
  const diskFree = gauge("postrider_disk_free_bytes", "Free disk space in the data directory.");
  const diskFloor = gauge(
    "postrider_disk_floor_bytes",
    "Free disk space below which no events are accepted; 0: there is no such limit.",
  );
  const databaseSize = gauge("postrider_database_bytes", "Size of the database, excluding its write-ahead log.");
  const usedSize = gauge(
    "postrider_database_used_bytes",
    "Size of the database, excluding room that can be used again.",
  );
  const storedEvents = gauge("postrider_events_stored", "Events in the database, of all accounts.");
  const logSize = gauge("postrider_database_log_bytes", "Size of the database's write-ahead log.");
  const oldestSnapshot = gauge(
    "postrider_database_oldest_snapshot_seconds",
    "Age of the oldest open transaction with a snapshot of a shared database; what changes meanwhile cannot be vacuumed.",
  );
  const nodes = gauge("postrider_nodes", "Servers that share the database and are alive, this one included.");
  const sinceBeat = gauge(
    "postrider_node_lease_seconds",
    "Time since this server last confirmed its lease on a shared database; from 9 on it starts no deliveries.",
  );
  new Gauge({
    name: "postrider_node_info",
    help: "Always 1; the label names this server.",
    labelNames: ["node"],
    registers,
  }).set({ node: sources.nodeName }, 1);
  const knowsDescriptors = sources.descriptors() !== null;
  const openDescriptors = knowsDescriptors ? gauge("process_open_fds", "Open file descriptors.") : null;
  const mostDescriptors = knowsDescriptors
    ? gauge("process_max_fds", "Maximum number of open file descriptors.")
    : null;
  new Gauge({
    name: "postrider_build_info",
    help: "Always 1; the labels identify the build.",
    labelNames: ["version", "commit", "bun"],
    registers,
  }).set({ version, commit, bun: Bun.version }, 1);

  const backups = sources.backups() === null ? null : createBackupGauges(gauge);

  // A series that begins with its first count has no rate, so each one begins with 0.
  for (const outcome of ["delivered", "retry", "failed"]) attempts.inc({ outcome }, 0);
  for (const connection of ["reused", "new"]) connections.inc({ connection }, 0);
  for (const errorClass of Object.keys(attemptErrorClasses)) attemptErrors.inc({ class: errorClass }, 0);
  for (const code of refusalCodes) refusals.inc({ code }, 0);
  for (const kind of ["account", "operator"] satisfies LoginKind[]) failedLogins.inc({ kind }, 0);
  for (const errorClass of storageErrorClasses) storageErrors.inc({ class: errorClass }, 0);

  return {
    /** Takes the routes, so that their counters exist: one for each status in an endpoint's description. */
    expect(endpoints: readonly ErasedEndpoint[]) {
      for (const { method, path, responses } of endpoints) {
        for (const status of Object.keys(responses)) requests.inc({ method, route: path, status }, 0);
      }
    },
    attemptFailed: (code: FailureCode, status: number | null) => attemptErrors.inc({ class: classOf(code, status) }),
    refused: (code: string) => refusals.inc({ code }),
    loginFailed: (kind: LoginKind) => failedLogins.inc({ kind }),
    storageFailed: (errorClass: StorageErrorClass) => storageErrors.inc({ class: errorClass }),
    mailSent: () => mails.inc(),
    mailFailed: () => failedMails.inc(),
    lineLeftOut: () => leftOutLines.inc(),
    lookUpUnknown: () => unknownLookUps.inc(),
    connectionsShed: (count: number) => shedConnections.inc(count),
    eventsAccepted: (count: number) => accepted.inc(count),
    attempted(outcome: "delivered" | "retry" | "failed", durationMs: number, answered: boolean) {
      attempts.inc({ outcome });
      if (answered) attemptSeconds.observe(durationMs / 1000);
    },
    delivered: (latencyMs: number) => deliverySeconds.observe(latencyMs / 1000),
    committed({ jobs, durationMs }: { jobs: number; durationMs: number }) {
      commitJobs.observe(jobs);
      commitSeconds.observe(durationMs / 1000);
    },
    answered: ({ method, path }: ErasedEndpoint, status: number) => requests.inc({ method, route: path, status }),
    connected: (reused: boolean) => connections.inc({ connection: reused ? "reused" : "new" }),
    /** The figures on the operator's page. `queue` is null when the database did not answer in time. */
    async figures() {
      const [depth, stored] = await Promise.all([inTime(sources, sources.queueDepth), inTime(sources, sources.stored)]);
      const { values } = await attempts.get();
      const attemptsThat = (outcome: string) => values.find(({ labels }) => labels.outcome === outcome)?.value ?? 0;
      const { freeBytes, floorBytes } = sources.disk();
      return {
        queue: depth && {
          pending: depth.pending,
          oldestDueSeconds:
            depth.oldestDueAt === null ? null : Math.max(0, (sources.clock.now() - depth.oldestDueAt) / 1000),
        },
        inFlight: sources.inFlight(),
        sinceStart: {
          events: (await accepted.get()).values[0]?.value ?? 0,
          delivered: attemptsThat("delivered"),
          retried: attemptsThat("retry"),
          failed: attemptsThat("failed"),
        },
        stored,
        ...sources.storage(),
        diskFreeBytes: freeBytes,
        diskFloorBytes: floorBytes,
        memoryBytes: process.memoryUsage.rss(),
        openStreams: sources.openStreams(),
      };
    },
    async text(): Promise<string> {
      const [depth, stored] = await Promise.all([inTime(sources, sources.queueDepth), inTime(sources, sources.stored)]);
      if (stored) {
        storedEvents.set(stored.events);
        usedSize.set(stored.usedBytes);
      }
      if (depth) {
        pending.set(depth.pending);
        oldest.set(depth.oldestDueAt === null ? 0 : Math.max(0, (sources.clock.now() - depth.oldestDueAt) / 1000));
      }
      inFlight.set(sources.inFlight());
      for (const what of pausable) paused.set({ what }, sources.isPaused(what) ? 1 : 0);
      streams.set(sources.openStreams());
      resident.set(process.memoryUsage.rss());
      const disk = sources.disk();
      diskFree.set(disk.freeBytes);
      diskFloor.set(disk.floorBytes);
      const { databaseBytes, logBytes } = sources.storage();
      databaseSize.set(databaseBytes);
      logSize.set(logBytes);
      oldestSnapshot.set(sources.oldestSnapshotSeconds());
      const lease = sources.lease();
      nodes.set(Math.max(1, lease.living().length));
      sinceBeat.set(lease.sinceBeatMs() / 1000);
      const descriptors = sources.descriptors();
      if (descriptors) {
        openDescriptors?.set(descriptors.open);
        mostDescriptors?.set(descriptors.limit);
      }
      const backedUp = sources.backups();
      if (backedUp) backups?.set(backedUp);
      return registry.metrics();
    },
    contentType: registry.contentType,
  };
}

function createBackupGauges(gauge: (name: string, help: string) => Gauge) {
  const verified = gauge(
    "postrider_backup_last_verified_timestamp_seconds",
    "When the newest backup that is known to be whole was made; 0: there is none.",
  );
  const failed = gauge(
    "postrider_backup_last_failed",
    "1 if the latest backup, its verification or the removal of older ones failed.",
  );
  const size = gauge("postrider_backup_last_bytes", "Size of the latest backup.");
  const took = gauge("postrider_backup_last_duration_seconds", "How long the latest backup and its verification took.");
  const failureCount = gauge("postrider_backup_failures", "Backups and verifications that failed since the start.");
  const underWay = gauge("postrider_backup_under_way", "1 while a backup is being made or verified.");
  return {
    set({ verifiedAt, hasFailed, bytes, tookMs, failures, isUnderWay }: BackupFigures) {
      verified.set((verifiedAt ?? 0) / 1000);
      failed.set(hasFailed ? 1 : 0);
      size.set(bytes ?? 0);
      took.set((tookMs ?? 0) / 1000);
      failureCount.set(failures);
      underWay.set(isUnderWay ? 1 : 0);
    },
  };
}

export type Metrics = ReturnType<typeof createMetrics>;

/** A collector waits ten seconds, and a stalled database is detected later than this. */
const askTimeoutMs = 2_000;

/**
 * While the database is unreachable, its figures keep their last values and all others are still reported: they say what is
 * wrong.
 */
async function inTime<T>({ clock }: MetricSources, ask: () => Promise<T>): Promise<T | null> {
  let cancel = () => {};
  const late = new Promise<null>((resolve) => {
    cancel = clock.after(askTimeoutMs, () => resolve(null));
  });
  try {
    return await Promise.race([ask().catch(unlessUnavailable), late]);
  } finally {
    cancel();
  }
}

function unlessUnavailable(error: unknown): null {
  if (isUnavailable(error)) return null;
  throw error;
}
