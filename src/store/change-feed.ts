import type { Change } from "../domain/change.ts";

/** Between a backend, which tells of each change, and the program, which acts on it. */
export interface ChangeFeed {
  /** Never throws. */
  tell(change: Change): void;
  /** See `ChangeSource`. */
  onChange(listener: (change: Change) => void): void;
}

/** @param onDefect told of what the listener threw */
export function createChangeFeed(onDefect?: (error: unknown) => void): ChangeFeed {
  let listener: ((change: Change) => void) | null = null;
  return {
    tell(change) {
      try {
        listener?.(change);
      } catch (error) {
        // The change is on disk, and who made it has to hear that.
        onDefect?.(error);
      }
    },
    onChange(given) {
      listener = given;
    },
  };
}
