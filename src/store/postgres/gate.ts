import { shuttingDown } from "../../domain/errors.ts";

/** What stands before every verb, so that those that have begun come to their end before what they use is closed. */
export interface Gate {
  /** The same verbs, until it is closed. */
  before<Verbs extends object>(verbs: Verbs): Verbs;
  /** Refuses what is called from now on. Resolves when all that was called before has been answered. */
  close(): Promise<void>;
}

export function createGate(): Gate {
  const underWay = new Set<Promise<unknown>>();
  let isClosed = false;

  function pass(verb: (...given: unknown[]) => unknown, given: unknown[]): unknown {
    if (isClosed) return Promise.reject(shuttingDown());
    const answer = verb(...given);
    // What is known is answered at once, and has come to its end.
    if (!(answer instanceof Promise)) return answer;
    const ended = answer.then(
      () => void underWay.delete(ended),
      () => void underWay.delete(ended),
    );
    underWay.add(ended);
    return answer;
  }

  return {
    before: (verbs) =>
      Object.fromEntries(
        Object.entries(verbs).map(([name, verb]) => [
          name,
          typeof verb === "function" ? (...given: unknown[]) => pass(verb, given) : verb,
        ]),
      ) as typeof verbs,
    async close() {
      isClosed = true;
      await Promise.all(underWay);
    },
  };
}
