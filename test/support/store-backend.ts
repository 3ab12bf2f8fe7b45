import type { Vault } from "../../src/lib/vault.ts";
import type { OpenedStore } from "../../src/store/opened.ts";
import type { FakeClock } from "./fake-clock.ts";

/** What the suites of `test/contract/store`, `test/contract/billing` and `test/contract/limits` run over. */
export interface StoreBackend {
  readonly name: string;
  /** Opens a store of its own, which is empty. */
  open(options: {
    clock: FakeClock;
    mayGrow(): boolean;
    vault?: Vault;
    /** Where several can share it. */
    keys?(): string;
  }): Promise<StoreUnderTest>;
}

export interface StoreUnderTest extends OpenedStore {
  /** Opens what the store held once more, after it was closed. */
  reopen(): Promise<OpenedStore>;
  /** How many it holds of each kind of thing, whoever they belong to and whatever they are kept in. */
  count(): Promise<Readonly<Record<string, number>>>;
  /** Removes what is left of it, after it was closed. */
  remove(): Promise<void>;
}
