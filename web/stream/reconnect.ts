/** How a connection ended, or why there was none. */
export type Ending =
  /** It stood. The server closes it when it stops, or when the token that it was opened with expires. */
  | { readonly kind: "cut"; readonly stoodMs: number }
  /** No answer, or none that is a stream. */
  | { readonly kind: "unreachable" }
  /** 429 and 503 among others, in the server's words. */
  | { readonly kind: "refused"; readonly message: string; readonly retryAfterSeconds: number | null };

export interface Plan {
  /** In a row, including this one. */
  readonly failures: number;
  readonly pauseMs: number;
  /** Whether the pause ends when the network or the user comes back: not when the server said how long it is. */
  readonly mayEndEarly: boolean;
  /** Nothing to tell anybody yet. */
  readonly isQuiet: boolean;
}

/** One that stood for so long did not fail, and the next try is the first. */
const stoodLongMs = 10_000;
/** After a restart of the server all of its dashboards come at once, and a password that changes ends a stream first. */
const firstPauseMs = 400;
const longestPauseMs = 15_000;
/** Nobody is kept waiting for longer by what a proxy says. */
const longestRetryAfterMs = 120_000;

/** What to do after `failures` failed tries and this ending. @param chance from 0 up to 1: dashboards shall not come all at once */
export function planReconnect(ending: Ending, failures: number, chance: number): Plan {
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
