import { shuttingDown } from "../../domain/errors.ts";

/** Stands in front of every verb, so that calls in progress finish before what they use is closed. */
export interface Gate {
  /** Wraps the verbs; they work until it is closed. */
  before<Verbs extends object>(verbs: Verbs): Verbs;
  /** Refuses new calls from now on. Resolves when all earlier ones have been answered. */
  close(): Promise<void>;
}

export function createGate(): Gate {
  const underWay = new Set<Promise<unknown>>();
  let isClosed = false;

  function pass(verb: (...given: unknown[]) => unknown, given: unknown[]): unknown {
    if (isClosed) return Promise.reject(shuttingDown());
    const answer = verb(...given);
    // A known answer is returned synchronously, so its call is already finished.
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
