import type { Vault } from "../../src/lib/vault.ts";
import type { OpenedStore } from "../../src/store/opened.ts";
import type { FakeClock } from "./fake-clock.ts";

/** What the suites of `test/contract/store`, `test/contract/billing` and `test/contract/limits` run against. */
export interface StoreBackend {
  readonly name: string;
  /** Opens a separate, empty store. */
  open(options: {
    clock: FakeClock;
    mayGrow(): boolean;
    vault?: Vault;
    /** For backends that several nodes can share. */
    keys?(): string;
  }): Promise<StoreUnderTest>;
}

export interface StoreUnderTest extends OpenedStore {
  /** Reopens what the store held, after it was closed. */
  reopen(): Promise<OpenedStore>;
  /** How many of each kind of thing it holds, whoever they belong to and wherever they are stored. */
  count(): Promise<Readonly<Record<string, number>>>;
  /** Changes what it holds without its knowledge, to fill a table that would take minutes. */
  edit(statement: string): Promise<void>;
  /** Removes what is left of it, after it was closed. */
  remove(): Promise<void>;
}
