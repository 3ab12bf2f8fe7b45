import type { Cause, Failing } from "./failing.ts";

/** A replay that was started from a card, and what it covers. */
export interface Begun {
  /** Its id. */
  readonly replay: string;
  /** As in `Failing`. */
  readonly webhook: string | null;
  /** As named by `keyOf`; "": everything that failed for the webhook. */
  readonly cause: string;
}

export const keyOf = ({ code, status }: Pick<Cause, "code" | "status">): string => `${code} ${status}`;

/**
 * What fails, in the order it had when the latest replay was started; what was replayed stays in its place after it stops
 * failing. A row that disappeared would move what is below it.
 */
export function inPlace(
  failing: readonly Failing[],
  before: readonly Failing[],
  begun: readonly Begun[],
): readonly Failing[] {
  if (begun.length === 0) return failing;
  const stood = before.flatMap((was): Failing[] => {
    const now = failing.find(({ id }) => id === was.id);
    const replayed = begun.filter(({ webhook }) => webhook === was.id).map(({ cause }) => cause);
    if (now === undefined && replayed.length === 0) return [];
    const left = new Map(now?.causes.map((cause) => [keyOf(cause), cause]));
    const causes = was.causes.flatMap((cause): Cause[] => {
      const key = keyOf(cause);
      const found = left.get(key);
      left.delete(key);
      if (found) return [found];
      return replayed.includes(key) || replayed.includes("") ? [{ ...cause, ...over }] : [];
    });
    return [{ ...(now ?? { ...was, ...over, downSince: null }), causes: [...causes, ...left.values()] }];
  });
  return [...stood, ...failing.filter(({ id }) => !before.some((was) => was.id === id))];
}

const over = { waiting: 0, failed: 0, isOngoing: false } as const;
