import type { Jobs } from "./jobs.ts";
import type { Limits } from "./limits.ts";
import type { SandboxBooks } from "./sandbox-books.ts";
import type { Store } from "./store.ts";

export interface StorageSizes {
  readonly databaseBytes: number;
  readonly logBytes: number;
}

/** What a backend hands over. It ends with `store.close`, all of it. */
export interface OpenedStore {
  readonly store: Store;
  readonly sandboxBooks: SandboxBooks;
  readonly limits: Limits;
  readonly jobs: Jobs;
  /** How much room the store takes. */
  sizes(): StorageSizes;
}
