import type { SandboxBooks } from "./sandbox-books.ts";
import type { Store } from "./store.ts";

/** What a backend hands over. It ends with `store.close`, all of it. */
export interface OpenedStore {
  readonly store: Store;
  readonly sandboxBooks: SandboxBooks;
}
