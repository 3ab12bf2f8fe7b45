import type { Clock } from "../../lib/clock.ts";
import type { Node } from "./nodes.ts";
import type { Numbers } from "./numbers.ts";
import type { Pool } from "./pool.ts";
import type { SlowReads } from "./slow-reads.ts";
import type { Writes } from "./writes.ts";

/** What every group of verbs is built from. */
export interface Connection {
  /** Reads, and statements that are complete in themselves. */
  readonly pool: Pool;
  /** Its reads that take long. */
  readonly slowReads: SlowReads;
  /** Transactions of rare verbs. */
  readonly writes: Writes;
  readonly numbers: Numbers;
  /** The time that events and records carry. */
  readonly clock: Clock;
  /** The node that this process is. @throws DomainError `unavailable` while it has to find out whether it still is one */
  node(): Node;
  /** Whether this process is still the same node. */
  isNode(incarnation: number): boolean;
}
