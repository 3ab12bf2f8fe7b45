/** Work in the background that is one node's at a time. */
export type Job = "replayer" | "biller" | "janitor";

/**
 * Who does the work in the background. A job whose node no longer lives goes to another one, by the backend's doing; how far
 * the work is stands in the store, so whoever gets it goes on there.
 */
export interface Jobs {
  /**
   * Whether the job is this node's, as far as it knows: asked before each thing that is begun, it costs nothing. Two nodes
   * may believe it for as long as a lease lasts if one of them stood still, so whatever is done compares what it finds.
   */
  holds(job: Job): boolean;
  /** There is something to do for it: tells the node that holds it, if that is another one. May be called often. */
  wake(job: Job): void;
  /** @param wake called while this node holds the job, when another one has something for it, or may have had */
  onWake(job: Job, wake: () => void): void;
}

/** Those of a process that is alone. */
export const everyJob: Jobs = { holds: () => true, wake() {}, onWake() {} };
