import type { KeyedLock } from "../lib/keyed-lock.ts";
import type { Jobs } from "./jobs.ts";
import type { Limits } from "./limits.ts";
import type { NodeLease } from "./node-lease.ts";
import type { SandboxBooks } from "./sandbox-books.ts";
import type { Store } from "./store.ts";
import type { StreamLog } from "./stream-log.ts";
import type { KeptSecrets } from "./vault-check.ts";

export interface StorageSizes {
  readonly databaseBytes: number;
  readonly logBytes: number;
}

/** What a backend hands over. `store.close` ends all of it. */
export interface OpenedStore {
  readonly store: Store;
  readonly sandboxBooks: SandboxBooks;
  readonly limits: Limits;
  readonly jobs: Jobs;
  readonly lease: NodeLease;
  readonly streamLog: StreamLog;
  /**
   * Admits one holder at a time per billing account, by key: a second upgrade waits for the first and gets its answer. It keeps
   * order but does not protect the money, which the verbs of the books do: with several nodes, a lease may run out.
   */
  readonly billingLock: KeyedLock<number>;
  /** See `KeptSecrets`; empty if the store was opened without a vault. */
  readonly keptSecrets: KeptSecrets;
  /** How much space the store takes. */
  sizes(): StorageSizes;
  /** Recent age of the oldest transaction that holds a snapshot of a shared database, in seconds; otherwise 0. */
  oldestSnapshotSeconds(): number;
}
