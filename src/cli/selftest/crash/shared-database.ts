/** The database of several servers. */
export interface SharedDatabase {
  /** Must be empty; what the test makes stays there. */
  readonly url: string;
  /** What may be done to it; null: it is somebody else's, and left alone. */
  readonly mishaps: DatabaseMishaps | null;
}

export interface DatabaseMishaps {
  /** It ends as in a crash of its machine. */
  kill(): Promise<void>;
  /** Resolves when it has recovered. */
  start(): Promise<void>;
  /** Cuts a connection of one of the servers, as the next request or answer is on its way. */
  cut(what: "request" | "answer"): void;
}
