import type { Clock } from "../lib/clock.ts";
import type { Log } from "../lib/log.ts";

/** What the storage did not do. */
export interface StorageFailure {
  /** `begin`, `write`, `commit`, `read back`, `checkpoint`. */
  operation: string;
  error: unknown;
}

/** Over after this long without a failure and with a commit since: on a full disk small writes may still succeed. */
const calmMs = 10_000;

/** What SQLite says when it is not to blame. `SQLITE_CONSTRAINT` and the like are defects, and end in a request's line. */
const classes = ["full", "ioerr", "corrupt", "notadb", "readonly", "cantopen", "busy", "nomem"] as const;

export type StorageErrorClass = (typeof classes)[number];
export const storageErrorClasses: readonly StorageErrorClass[] = classes;

export interface StorageWatch {
  failed(failure: StorageFailure): void;
  /** A commit has gone through. */
  committed(): void;
}

export interface StorageWatchDeps {
  clock: Pick<Clock, "monotonicMs" | "after">;
  log: Log;
  /** For metrics: after every failure. */
  onFailure(errorClass: StorageErrorClass): void;
}

/**
 * Tells the log of a storage that fails: one line when it begins, with what SQLite says, and one when it is over, with how
 * often it failed. Another error within an episode, as when a full disk turns out to be a broken one, gets its own line.
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
      const errorClass = classes.find((name) => code.startsWith(`SQLITE_${name.toUpperCase()}`));
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
      const level = errorClass === "full" || errorClass === "busy" ? "warn" : "error";
      log.write(level, "storage.failed", {
        operation,
        code,
        message: error instanceof Error ? error.message : String(error),
      });
    },
    committed() {
      if (episode !== null) episode.hasCommitted = true;
    },
  };
}

function codeOf(error: unknown): string {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return typeof code === "string" ? code : "";
}
