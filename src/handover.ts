/**
 * A server that is succeeded by another process on the same port and data directory, without a request refused.
 *
 *   predecessor                              successor
 *   starts it                                reads its settings, looks at the database, shares the port
 *                          ◀── ready ──      (or: refused, and the predecessor goes on as if nothing had been)
 *   attempts in flight end; each answer is
 *   the last one of its connection
 *                          ── leaving ──▶    has all new connections steered to itself, and holds what they ask
 *                          ◀── steered ──
 *   answers what it still has, closes the
 *   database, leaves the data directory
 *                          ── released ──▶   enters the data directory, opens the database, answers what it held
 *
 * The database has one owner at any time: the successor waits for the lock of the data directory, as every start does.
 */

/** What the successor says. */
export type SuccessorMessage =
  | { readonly kind: "ready"; readonly version: string }
  /** It has ended, and nothing has changed. */
  | { readonly kind: "refused"; readonly message: string }
  | { readonly kind: "steered" };

/** What the predecessor says. */
export type PredecessorMessage = { readonly kind: "leaving" } | { readonly kind: "released" };

/** The successor, as its predecessor sees it once it is ready. */
export interface Successor {
  readonly pid: number;
  readonly version: string;
  /** Has the port's new connections go to it. Resolves when they do, or when it has died. */
  takePort(): Promise<void>;
  /**
   * Port, database and data directory are free.
   * @returns false when it has died meanwhile: nobody serves them then
   */
  enter(): boolean;
}

/** The predecessor, as its successor sees it. */
export interface Predecessor {
  say(message: SuccessorMessage): void;
  /** Resolves when it says so, or is gone: then everything is free, too. */
  heard(kind: PredecessorMessage["kind"]): Promise<void>;
}
