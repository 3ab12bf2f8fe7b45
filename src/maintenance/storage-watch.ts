import { isCertificateRefused } from "../lib/certificate.ts";
import type { Clock } from "../lib/clock.ts";
import { messageOf } from "../lib/error-message.ts";
import type { Log } from "../lib/log.ts";

/** An operation that the storage failed to do. */
export interface StorageFailure {
  /** `begin`, `write`, `commit`, `read back`, `checkpoint`; for a database server `statement`, `heartbeat`, `change`, … */
  operation: string;
  error: unknown;
}

/**
 * An episode is over after this long without a failure and with a commit since: on a full disk small writes may still
 * succeed.
 */
const calmMs = 10_000;

const classes = ["full", "ioerr", "corrupt", "notadb", "readonly", "cantopen", "busy", "nomem", "unreachable"] as const;

export type StorageErrorClass = (typeof classes)[number];
export const storageErrorClasses: readonly StorageErrorClass[] = classes;

/**
 * Classes by the prefix of a code: SQLite's own, an SQLSTATE of PostgreSQL, or what its client reports. The first match
 * counts. `SQLITE_CONSTRAINT` and the like are defects, and end up in a request's log line; conflicts between transactions
 * are not failures.
 */
const classesByCode: readonly (readonly [prefix: string, StorageErrorClass])[] = [
  // The shared-memory index of the log has no room to grow.
  ["SQLITE_IOERR_SHMSIZE", "full"],
  ...classes.map((name) => [`SQLITE_${name.toUpperCase()}`, name] as const),
  ["53100", "full"],
  ["53200", "nomem"],
  // Too many connections.
  ["53", "busy"],
  ["57014", "busy"],
  ["25P03", "busy"],
  ["25P04", "busy"],
  ["25006", "readonly"],
  ["42501", "readonly"],
  ["58", "ioerr"],
  ["XX001", "corrupt"],
  ["XX002", "corrupt"],
  ["08", "unreachable"],
  ["57P", "unreachable"],
  ["28", "unreachable"],
  ["3D000", "unreachable"],
  ["ERR_POSTGRES_CONNECTION", "unreachable"],
  ["ERR_POSTGRES_TLS", "unreachable"],
  ["EPROTO", "unreachable"],
  ["DeadlinePassed", "unreachable"],
  // The end of a failover.
  ["DatabaseWentBack", "unreachable"],
];

const classOf = (error: unknown, code: string): StorageErrorClass | undefined =>
  isCertificateRefused(error) ? "unreachable" : classesByCode.find(([prefix]) => code.startsWith(prefix))?.[1];

/** Errors that pass by themselves, or when somebody makes room. */
const passing: ReadonlySet<StorageErrorClass> = new Set(["full", "busy", "unreachable"]);

export interface StorageWatch {
  failed(failure: StorageFailure): void;
  /** Called when a commit has gone through, or a heartbeat. */
  committed(): void;
}

export interface StorageWatchDeps {
  clock: Pick<Clock, "monotonicMs" | "after">;
  log: Log;
  /** For metrics: called after every failure. */
  onFailure(errorClass: StorageErrorClass): void;
}

/**
 * Logs storage failures: one line when they begin, with what the database says, and one when they are over, with their
 * number. A different error within an episode, as when a full disk turns out to be a broken one, gets its own line.
 */
export function createStorageWatch({ clock, log, onFailure }: StorageWatchDeps): StorageWatch {
  let episode: { since: number; failures: number; lastAt: number; hasCommitted: boolean; codes: Set<string> } | null =
    null;

  function endWhenCalm(): void {
    if (episode === null) return;
    const { since, failures, lastAt, hasCommitted } = episode;
    const now = clock.monotonicMs();
    if (!hasCommitted || now - lastAt < calmMs) {
      clock.after(Math.max(calmMs - (now - lastAt), calmMs / 10), endWhenCalm);
      return;
    }
    episode = null;
    log.write("info", "storage.recovered", { failures, seconds: Math.round((now - since) / 1000) });
  }

  return {
    failed({ operation, error }) {
      const code = codeOf(error);
      const errorClass = classOf(error, code);
      if (errorClass === undefined) return;
      onFailure(errorClass);
      const now = clock.monotonicMs();
      if (episode === null) {
        episode = { since: now, failures: 0, lastAt: now, hasCommitted: false, codes: new Set() };
        clock.after(calmMs, endWhenCalm);
      }
      episode.failures += 1;
      episode.lastAt = now;
      episode.hasCommitted = false;
      if (episode.codes.has(code)) return;
      episode.codes.add(code);
      const level = passing.has(errorClass) ? "warn" : "error";
      log.write(level, "storage.failed", {
        operation,
        code,
        message: messageOf(error),
      });
    },
    committed() {
      if (episode !== null) episode.hasCommitted = true;
    },
  };
}

/** For PostgreSQL this is the SQLSTATE, which its client reports as `errno`. */
function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return "";
  const { code, errno, name }: { code?: unknown; errno?: unknown; name: string } = error;
  if (typeof errno === "string") return errno;
  return typeof code === "string" ? code : name;
}
