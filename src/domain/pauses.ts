import { messageOf } from "../lib/error-message.ts";
import { unavailable } from "./errors.ts";

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
  /**
   * Ends this pause.
   * @returns whether it was in effect
   * @throws unavailable `storage_unavailable` when that cannot be noted; then it stays in effect
   */
  resume(what: Pausable): boolean;
}

export interface PausesDeps {
  /** Notes it for the next start. @throws the system's error when it cannot */
  note(what: Pausable): void;
  /** Starts what was held back. */
  start(what: Pausable): void;
}

export function createPauses(given: readonly Pausable[], { note, start }: PausesDeps): Pauses {
  const held = new Set(given);
  return {
    isPaused: (what) => held.has(what),
    paused: () => pausable.filter((what) => held.has(what)),
    resume(what) {
      if (!held.has(what)) return false;
      try {
        note(what);
      } catch (error) {
        throw unavailable(
          `The data directory cannot be written (${messageOf(error)}), so ${what} stay paused. ` +
            "Try: make room there, and resume again.",
          "storage_unavailable",
          30,
        );
      }
      held.delete(what);
      start(what);
      return true;
    },
  };
}
