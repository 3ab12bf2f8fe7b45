/** Statements, outside the lanes, that make this node an owner or tell it of something to attempt. */
export interface UnderWay {
  run<T>(begin: () => Promise<T>): Promise<T>;
  /** Resolves when all that have begun have ended, whatever the outcome. */
  ended(): Promise<void>;
  /** Runs `work` while none of them is in progress: those that have begun end first, and others wait. One at a time. */
  pause<T>(work: () => Promise<T>): Promise<T>;
}

export function createUnderWay(): UnderWay {
  const statements = new Set<Promise<unknown>>();
  let paused: Promise<unknown> | null = null;

  async function ended(): Promise<void> {
    await Promise.all(statements);
  }

  return {
    async run(begin) {
      while (paused !== null) await paused;
      const statement = begin();
      const tracked = statement.catch(() => {}).finally(() => statements.delete(tracked));
      statements.add(tracked);
      return statement;
    },
    ended,
    async pause(work) {
      while (paused !== null) await paused;
      const { promise, resolve } = Promise.withResolvers<void>();
      paused = promise;
      try {
        await ended();
        return await work();
      } finally {
        paused = null;
        resolve();
      }
    },
  };
}
