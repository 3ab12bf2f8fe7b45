/** How a connection ended, or why there was none. */
export type Ending =
  /** It was established. The server closes it when it stops, or when the token that opened it expires. */
  | { readonly kind: "cut"; readonly stoodMs: number }
  /** No response, or not a stream. */
  | { readonly kind: "unreachable" }
  /** In a tab that is hidden, whatever ended it: the next one begins when the tab is seen. */
  | { readonly kind: "unseen" }
  /** 429 and 503 among others, in the server's words. */
  | { readonly kind: "refused"; readonly message: string; readonly retryAfterSeconds: number | null };

export interface Plan {
  /** Consecutive failures, including this one. */
  readonly failures: number;
  readonly pauseMs: number;
  /** Whether the pause ends early when the network or the user comes back: not when the server said how long to wait. */
  readonly mayEndEarly: boolean;
  /** Nothing to tell the user yet. */
  readonly isQuiet: boolean;
}

/** A connection that lasted this long did not fail: counting starts over. */
const stoodLongMs = 10_000;
/** A restarted server gets all of its dashboards in one go, and a changed password first ends a stream. */
const firstPauseMs = 400;
const longestPauseMs = 15_000;
/** The upper limit, however long a proxy asks to wait. */
const longestRetryAfterMs = 120_000;

/**
 * What to do after `failures` failures and this ending.
 * @param chance from 0 up to 1, so that dashboards do not all reconnect together
 */
export function planReconnect(ending: Ending, failures: number, chance: number): Plan {
  if (ending.kind === "unseen") return { failures, pauseMs: 0, mayEndEarly: true, isQuiet: true };
  const vary = (ms: number) => Math.round(ms * (0.75 + chance / 2));
  if (ending.kind === "cut" && (ending.stoodMs >= stoodLongMs || failures === 0)) {
    return {
      failures: ending.stoodMs >= stoodLongMs ? 0 : 1,
      pauseMs: vary(firstPauseMs),
      mayEndEarly: true,
      isQuiet: true,
    };
  }
  const pauseMs = vary(Math.min(firstPauseMs * 2 ** failures, longestPauseMs));
  const asked = ending.kind === "refused" ? ending.retryAfterSeconds : null;
  const askedMs = Math.min((asked ?? 0) * 1000, longestRetryAfterMs);
  return {
    failures: failures + 1,
    pauseMs: Math.max(pauseMs, Math.round(askedMs * (1 + chance / 4))),
    mayEndEarly: asked === null,
    isQuiet: false,
  };
}
