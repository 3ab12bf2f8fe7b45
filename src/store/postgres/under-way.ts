/** Statements that have begun, for whoever has to come after their answers. */
export interface UnderWay {
  track<T>(statement: Promise<T>): Promise<T>;
  /** Resolves when those that are tracked now have ended, whatever became of them. */
  ended(): Promise<void>;
}

export function createUnderWay(): UnderWay {
  const statements = new Set<Promise<unknown>>();
  return {
    track(statement) {
      const tracked = statement.catch(() => {}).finally(() => statements.delete(tracked));
      statements.add(tracked);
      return statement;
    },
    async ended() {
      await Promise.all(statements);
    },
  };
}
