import type { BackupHistory } from "../../backup/history.ts";
import type { StoredBackup } from "../../backup/place.ts";
import type { PagesCheck, StoreLook } from "../../store/open.ts";

/** A fact, or why there is none, in a sentence. */
export type Known<T> = { readonly value: T } | { readonly failure: string };

/** What a server says that runs on the data directory. */
export interface RunningServer {
  readonly url: string;
  readonly version: string;
  readonly nowMs: number;
  readonly uptimeMs: number;
  readonly paused: readonly string[];
  /** Null: the database did not say in time. */
  readonly queue: { readonly waiting: number; readonly oldestDueMs: number | null } | null;
  readonly eventsSinceStart: number;
  readonly bytesPerEvent: number | null;
}

export interface DiskFacts {
  readonly folder: string;
  readonly freeBytes: number;
  readonly floorBytes: number;
}

export interface LogFacts {
  readonly path: string;
  readonly bytes: number;
  /** Other programs that have the database open, as far as can be seen. */
  readonly openedBy: readonly { readonly pid: number; readonly name: string }[];
}

/** The master key's file, and whether what is in it opens the database. */
export interface KeyFacts {
  readonly path: string;
  readonly state: "opens" | "missing" | "unreadable" | "another";
}

/** Of a server that leaves its log to Litestream. */
export interface ReplicationFacts {
  readonly logBytes: number;
  /** Litestream's own folder beside the database. */
  readonly folder: string;
  readonly hasFolder: boolean;
}

export interface BackupFacts {
  /** Null: none is set. */
  readonly place: string | null;
  /** The longest time between two by schedule; null without one. */
  readonly everyMs: number | null;
  readonly stored: Known<readonly StoredBackup[]>;
  readonly history: BackupHistory;
}

/** What was checked of the pages, or why it was not. */
export type PagesFact = PagesCheck | { readonly kind: "skipped"; readonly bytes: number };
export type { StoreLook };
