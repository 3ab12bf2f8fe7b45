/**
 * How a server is succeeded by another process on the same port and data directory, without refusing a request.
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
 *
 * A database that servers can share has room for both, so nothing is held, and no delivery waits for an attempt in flight:
 *
 *                          ◀── ready ──
 *   leaves the data directory
 *                          ─ leaving, released ▶  enters it, opens the database, listens, has all new connections steered to itself
 *                          ◀── steered ──
 *   attempts in flight end, closes
 *
 * Who dies on the way:
 *
 *   successor, before it is ready            the predecessor goes on
 *   successor, before it was released        the predecessor starts another one in its place; if that dies, too, it ends with a failure
 *   predecessor                              everything is free then, and the successor enters
 *   successor, after it was released         a server that has died: its supervisor starts it anew
 *
 * The predecessor is stopped on the way: the service ends. Nobody takes the place of a successor that has died by then.
 *
 *   successor, before `leaving`              is killed: it owns nothing
 *   successor, after it                      is told (`stop`), and ends as a server that was sent SIGTERM, once it was let in
 */

/** Messages from the successor. */
export type SuccessorMessage =
  | { readonly kind: "ready"; readonly version: string }
  /** It has exited, and nothing has changed. */
  | { readonly kind: "refused"; readonly message: string }
  | { readonly kind: "steered" };

/** Messages from the predecessor. */
export type PredecessorMessage =
  | { readonly kind: "leaving" }
  | { readonly kind: "released" }
  /** Both end; it may come at any time. */
  | { readonly kind: "stop" };

/**
 * The successor, as its predecessor sees it once it is ready. If it dies before it was told to enter, another one takes
 * its place, once.
 */
export interface Successor {
  readonly pid: number;
  readonly version: string;
  /** Steers the port's new connections to it. Resolves when they go there, or when there is none to take them. */
  takePort(): Promise<void>;
  /**
   * Port, database and data directory are free.
   * @returns false when no successor is alive: then nobody serves them
   */
  enter(): Promise<boolean>;
  /**
   * The data directory is free, and the database has room for another server. Resolves when the successor has the port.
   * @returns false when none is alive
   */
  enterBeside(): Promise<boolean>;
  /** Ends it at once, as a crash would. */
  kill(): void;
}

/** The predecessor, as its successor sees it. */
export interface Predecessor {
  say(message: SuccessorMessage): void;
  /** @returns true when it says so; false when it is gone: then everything is free as well */
  heard(kind: PredecessorMessage["kind"]): Promise<boolean>;
}
