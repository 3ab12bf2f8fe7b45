/** What `POSTRIDER_PAUSED` can hold back while the server keeps answering and accepting events. */
export const pausable = ["deliveries", "charges"] as const;

export type Pausable = (typeof pausable)[number];

/**
 * A restored or cloned server may run alongside the one it was copied from: then both would deliver the same events and
 * charge the same cards. Started paused, it does neither until its operator says so.
 */
export interface Pauses {
  isPaused(what: Pausable): boolean;
  /** In the order of `pausable`. */
  paused(): Pausable[];
  /** Ends these pauses. @returns those that were in effect */
  resume(whats: readonly Pausable[]): Pausable[];
}

/** @param onResume starts what was held back */
export function createPauses(given: readonly Pausable[], onResume: (what: Pausable) => void): Pauses {
  const held = new Set(given);
  return {
    isPaused: (what) => held.has(what),
    paused: () => pausable.filter((what) => held.has(what)),
    resume(whats) {
      const ended = pausable.filter((what) => whats.includes(what) && held.delete(what));
      for (const what of ended) onResume(what);
      return ended;
    },
  };
}
