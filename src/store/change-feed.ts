import type { Change } from "../domain/change.ts";

/** Connects a backend, which reports each change, to the program, which acts on it. */
export interface ChangeFeed {
  /** Never throws. */
  tell(change: Change): void;
  /** See `ChangeSource`. */
  onChange(listener: (change: Change) => void): void;
}

/** @param onDefect called with whatever the listener threw */
export function createChangeFeed(onDefect?: (error: unknown) => void): ChangeFeed {
  let listener: ((change: Change) => void) | null = null;
  return {
    tell(change) {
      try {
        listener?.(change);
      } catch (error) {
        // The change is on disk, and its caller has to learn that.
        onDefect?.(error);
      }
    },
    onChange(given) {
      listener = given;
    },
  };
}
