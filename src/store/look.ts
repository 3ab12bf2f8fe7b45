/** What a store says of itself to somebody who only looks. */
export interface StoreLook {
  /** Its name and version, for people. */
  readonly backend: string;
  /** How many migrations have run, and how many this program knows. */
  readonly schema: { readonly found: number; readonly known: number };
  /** What follows is only read from a store of this program's schema; else null. */
  readonly figures: StoreFigures | null;
  /** Of a database on a server of its own; else null. */
  readonly server: {
    readonly clockMs: number;
    /** Age of the oldest transaction that sees the database as it was. */
    readonly oldestSnapshotSeconds: number;
  } | null;
}

export interface StoreFigures {
  /** The time in the id of the newest event; null when there is none. */
  readonly newestEventAt: number | null;
  readonly waiting: number;
  /** Null when nothing waits. */
  readonly oldestDueAt: number | null;
}
