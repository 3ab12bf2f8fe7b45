import type { BackupHistory } from "../../backup/history.ts";
import type { StoredBackup } from "../../backup/place.ts";
import type { PagesCheck, StoreLook } from "../../store/open.ts";

/** A fact, or a sentence on why it is not known. */
export type Known<T> = { readonly value: T } | { readonly failure: string };

/** What a server running on the data directory reports. */
export interface RunningServer {
  readonly url: string;
  readonly version: string;
  /** How far its clock is ahead of this machine's; negative: behind. */
  readonly clockAheadMs: number;
  readonly uptimeMs: number;
  /** Why it does not accept events; null: it does. */
  readonly notReady: string | null;
  readonly paused: readonly string[];
  /** Null: the database did not answer in time. */
  readonly queue: { readonly waiting: number; readonly oldestDueMs: number | null } | null;
  readonly eventsSinceStart: number;
  readonly bytesPerEvent: number | null;
}

/** A server that holds the data directory, but cannot be reached from here, such as one in another container. */
export interface UnreachableServer {
  readonly pid: number;
  readonly url: string;
}

export interface DiskFacts {
  readonly folder: string;
  readonly freeBytes: number;
  /** 0: there is none. */
  readonly floorBytes: number;
  /** Whether the database is there, too, so that events take up space. */
  readonly holdsDatabase: boolean;
  /** Why this user cannot write there; null: they can. */
  readonly writeFault: string | null;
}

export interface LogFacts {
  readonly path: string;
  readonly bytes: number;
  /** Other programs that have the database open, as far as this can be determined. */
  readonly openedBy: readonly { readonly pid: number; readonly name: string }[];
}

/** The master key's file, and whether the key in it opens the database; `next`: only the one that is to take its place does. */
export interface KeyFacts {
  readonly path: string;
  readonly next: string;
  readonly state: "opens" | "next" | "missing" | "unreadable" | "another";
}

/** For a server that leaves its log to Litestream. */
export interface ReplicationFacts {
  readonly logBytes: number;
  /** Litestream's own folder next to the database. */
  readonly folder: string;
  readonly hasFolder: boolean;
}

export interface BackupFacts {
  /** Null: none is configured. */
  readonly place: string | null;
  /** When the latest scheduled backup that has to be there by now was due; null without a schedule that old. */
  readonly expectedSince: number | null;
  readonly stored: Known<readonly StoredBackup[]>;
  readonly history: BackupHistory;
}

/** The outcome of the page check, or why there was none. */
export type PagesFact = PagesCheck | { readonly kind: "skipped"; readonly bytes: number };
export type { StoreLook };
