/** Background work that belongs to one node at a time. */
export type Job = "replayer" | "biller" | "janitor";

/**
 * Which node does the background work. The backend moves the job of a dead node to another one; the progress of the work is in
 * the store, so the new holder continues from there. Every node does every job, except for the biller: a node whose charges are
 * paused, or which takes no payments, must not keep that from the others.
 */
export interface Jobs {
  /**
   * Whether this node holds the job, as far as it knows: asked before each piece of work, and costs nothing. If one node
   * stalled, two may believe it for up to the length of a lease, so all work compares against what it finds in the store.
   */
  holds(job: Job): boolean;
  /** Whether another process holds the job. */
  isHeld(job: Job): Promise<boolean>;
  /** From now on this node does the job if no other one has it. Resolves when it has tried to take it; never rejects. */
  offer(job: "biller"): Promise<void>;
  /** It no longer does: another node takes the job within seconds. */
  withdraw(job: "biller"): void;
  /** There is work for the job: tells the node that holds it, if that is another one. May be called often. */
  wake(job: Job): void;
  /** @param wake called while this node holds the job, when another node has work for it, or may have had */
  onWake(job: Job, wake: () => void): void;
}

/** The jobs of a process that runs alone. */
export const everyJob: Jobs = {
  holds: () => true,
  isHeld: async () => false,
  async offer() {},
  withdraw() {},
  wake() {},
  onWake() {},
};
