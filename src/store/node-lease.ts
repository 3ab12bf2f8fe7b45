/** A process that serves the store. */
export interface LivingNode {
  readonly slot: number;
  readonly incarnation: number;
  /** For people. */
  readonly name: string;
  /** Where it listens, as `host:port`, of several with commas between them; empty until it does. */
  readonly listener: string;
}

/** A node as the store has it at this moment. */
export interface NodeStanding extends LivingNode {
  /** When it joined, in ms since the Unix epoch. */
  readonly since: number;
  readonly lastBeatMsAgo: number;
  /** Until others take it for dead, if it sends no other heartbeat; null: nobody ever does. */
  readonly leaseLeftMs: number | null;
  /** Form of the database that its program is for; null: it is alone on its own. */
  readonly schema: number | null;
  /** False: its lease has run out, and soon its place is free. */
  readonly isAlive: boolean;
  /** What it does in the background, in the order of the alphabet. */
  readonly jobs: readonly string[];
  /** Whether it is this process. */
  readonly isSelf: boolean;
}

/** What this process may do as one of several that share the store. One that is alone may always. */
export interface NodeLease {
  /** Whether an attempt may start now: it will have ended before anybody else may own its delivery. Costs nothing. */
  mayStart(): boolean;
  /** How long ago the last heartbeat that was confirmed was sent, in ms. Costs nothing. */
  sinceBeatMs(): number;
  /** Those that live, this one among them, as of the last heartbeat. */
  living(): readonly LivingNode[];
  /** All that hold a place, by slot. Empty where there is no list, as this process is alone. */
  nodes(): Promise<readonly NodeStanding[]>;
  /** Tells the others where this one listens, and hears it of them. Never rejects: what fails is repeated. */
  announce(listener: string): Promise<void>;
  /** The one who acts on what becomes of the lease, from now on. Must not throw. */
  onChange(listener: NodeLeaseListener): void;
}

export interface NodeLeaseListener {
  /**
   * It was declared dead: what it owned is others', and what it keeps in memory may be older than what others were told.
   * It is about to come back as another node.
   */
  lost(): void;
  /** The lease goes on, so what had to wait for that may start. */
  confirmed(): void;
  /** What was owned is nobody's: that of a node that died or left, or its own from before. */
  unowned(): void;
}

/** That of a process that is alone. */
export const alone: NodeLease = {
  mayStart: () => true,
  sinceBeatMs: () => 0,
  living: () => [],
  nodes: async () => [],
  announce: async () => {},
  onChange() {},
};
