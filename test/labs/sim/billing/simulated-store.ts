import type { Clock } from "../../../../src/lib/clock.ts";
import type { KeyedLock } from "../../../../src/lib/keyed-lock.ts";
import type { Store } from "../../../../src/store/store.ts";
import type { Life } from "../../../support/mortal.ts";

/** A database to be simulated over, and its tables, to look at what no verb shows. */
export interface SimulatedStore {
  /** As each node has it; the same account is worked for at all of them. */
  readonly nodes: readonly [Store, ...Store[]];
  /** What one run of the program at a node waits with for those of the others. */
  lock(run: { life: Life; clock: Clock; onFailure(error: unknown): void }): AccountLock;
  /** By a statement with a key, in the words of SQLite. */
  rows<Row>(statement: string, key: number): Promise<Row[]>;
  /** Changes with whatever is written: what was read is what there is, as long as it is the same. */
  writes(): number;
  /** Reads what there is of one account; the others live at other times. @returns what puts it back */
  backUp(of: { tenantKey: number; accountKey: number }): Promise<() => Promise<void>>;
  /** Waits a little for what is under way. */
  goOn(): Promise<void>;
  end(): Promise<void>;
}

export interface AccountLock extends KeyedLock<number> {
  /** Whatever it holds is anybody's, as when a lease runs out. */
  lose(): Promise<void>;
}

/** Of the event loop. */
export const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Tables of an account, each after those that its rows name. */
export const accountTables = [
  "card_verification",
  "saved_card",
  "plan_period",
  "invoice",
  "invoice_day",
  "charge",
] as const;
