/** The database that several servers share. */
export interface SharedDatabase {
  /** Must be empty; what the test creates stays there. */
  readonly url: string;
  /** What may be done to it; null: it belongs to somebody else, and is left alone. */
  readonly mishaps: DatabaseMishaps | null;
}

export interface DatabaseMishaps {
  /** Ends the database as a crash of its machine would. */
  kill(): Promise<void>;
  /** Resolves when it has recovered. */
  start(): Promise<void>;
  /** Cuts a server's connection while the next request or answer is on its way. */
  cut(what: "request" | "answer"): void;
}
