/** What a store tells about itself to a process that only looks at it. */
export interface StoreLook {
  /** Its name and version, for people. */
  readonly backend: string;
  /** How many migrations have run, and how many this program knows. */
  readonly schema: {
    readonly found: number;
    readonly known: number;
    /** An upgrade has begun and has not ended, so nobody can use the store. */
    readonly isHalfway: boolean;
  };
  /** Why no server may use it, whatever its schema: its data was moved. It says what to do; null: one may. */
  readonly refusal: string | null;
  /** Only read from a store with this program's schema that a server may use; otherwise null. */
  readonly figures: StoreFigures | null;
  /** For a database on a server of its own; otherwise null. */
  readonly server: {
    /** How far its clock is ahead of this machine's; negative: behind. */
    readonly clockAheadMs: number;
    /** Age of the oldest transaction that holds a snapshot of the database. */
    readonly oldestSnapshotSeconds: number;
  } | null;
}

export interface StoreFigures {
  /** The time encoded in the id of the newest event; null when there is none. */
  readonly newestEventAt: number | null;
  readonly waiting: number;
  /** Null when nothing waits. */
  readonly oldestDueAt: number | null;
}
