/** A process that serves the store. */
export interface LivingNode {
  readonly slot: number;
  readonly incarnation: number;
  /** For people. */
  readonly name: string;
  /** Where it listens, as `host:port`, several separated by commas; empty until it listens. */
  readonly listener: string;
}

/** A node as the store knows it at this moment. */
export interface NodeStanding extends LivingNode {
  /** When it joined, in ms since the Unix epoch. */
  readonly since: number;
  readonly lastBeatMsAgo: number;
  /** Time until others declare it dead if it sends no further heartbeat; null when they never do. */
  readonly leaseLeftMs: number | null;
  /** Schema that its program is made for; null when it runs alone on its own database. */
  readonly schema: number | null;
  /** False: its lease has run out, and its slot will soon be free. */
  readonly isAlive: boolean;
  /** What it does in the background, in alphabetical order. */
  readonly jobs: readonly string[];
  /** Whether it is this process. */
  readonly isSelf: boolean;
}

/** A node whose lease ran out, and whose deliveries others have now. */
export interface EndedNode extends Pick<LivingNode, "incarnation" | "name"> {
  /** How many it owned. */
  readonly deliveries: number;
}

/** What this process may do as one of several that share the store. One that runs alone always may. */
export interface NodeLease {
  /** Whether an attempt may start now: it will have ended before any other node may own its delivery. Costs nothing. */
  mayStart(): boolean;
  /** How long ago the last confirmed heartbeat was sent, in ms. Costs nothing. */
  sinceBeatMs(): number;
  /** The living nodes, including this one, as of the last heartbeat. */
  living(): readonly LivingNode[];
  /** All nodes that hold a slot, by slot. Empty for a process that runs alone, which has no list. */
  nodes(): Promise<readonly NodeStanding[]>;
  /** Tells the others where this one listens, and learns where they do. Never rejects: whatever fails is retried. */
  announce(listener: string): Promise<void>;
  /** Sets the one listener that acts on what becomes of the lease. Must not throw. */
  onChange(listener: NodeLeaseListener): void;
}

export interface NodeLeaseListener {
  /**
   * This node was declared dead, or the database has gone back to an earlier state: what it owned belongs to others, and what
   * it keeps in memory may be older than what others were told, or may never have been. It is about to come back as another
   * node.
   */
  lost(): void;
  /** This node is back as another one; the lease that it lost was last confirmed `awayMs` ago. */
  rejoined(awayMs: number): void;
  /** The lease was extended, so what had to wait for that may start. */
  confirmed(): void;
  /** This node, and no other one, has declared these dead; `unowned` follows. */
  rescued(nodes: readonly EndedNode[]): void;
  /** Deliveries have become unowned: those of a node that died or left, or this node's own from before. */
  unowned(): void;
}

/** The lease of a process that runs alone. */
export const alone: NodeLease = {
  mayStart: () => true,
  sinceBeatMs: () => 0,
  living: () => [],
  nodes: async () => [],
  announce: async () => {},
  onChange() {},
};
