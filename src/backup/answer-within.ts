import type { Clock } from "../lib/clock.ts";
import { untilAborted } from "../lib/until-aborted.ts";

/** Enough for a list or a removal. Nothing else bounds a store that takes connections and stays silent. */
const answerWithinMs = 10_000;

/**
 * What a place answers, unless it takes too long.
 * @param url names the place
 * @throws Error with what to try, or the signal's reason
 */
export async function answerWithin<T>(
  url: string,
  ask: () => Promise<T>,
  { clock, signal = new AbortController().signal }: { clock: Clock; signal?: AbortSignal },
): Promise<T> {
  const late = new AbortController();
  const cancel = clock.after(answerWithinMs, () => late.abort(silent(url)));
  try {
    return await untilAborted(signal, () => untilAborted(late.signal, ask));
  } finally {
    cancel();
  }
}

const silent = (url: string) =>
  new Error(
    `${url} does not answer within ${answerWithinMs / 1000} s. Try: check the network and POSTRIDER_BACKUP_URL.`,
  );
