import type { Clock } from "../../lib/clock.ts";

/**
 * A figure from the database as of a little while ago: whoever asks for it neither waits for the database nor fails with it.
 */
export interface KeptFigure {
  /** Refreshes it in the background when it is old. 0 until there is an answer. Never throws. */
  latest(): number;
  /** Resolves when no query is in progress. */
  close(): Promise<void>;
}

export interface KeptFigureOptions {
  read(): Promise<number>;
  /** Age in ms from which an answer is old. */
  maxAgeMs: number;
  clock: Pick<Clock, "monotonicMs">;
  onFailure(error: unknown): void;
}

export function createKeptFigure({ read, maxAgeMs, clock, onFailure }: KeptFigureOptions): KeptFigure {
  let latest = 0;
  let askedAt = Number.NEGATIVE_INFINITY;
  let asking: Promise<void> | null = null;

  async function ask(): Promise<void> {
    askedAt = clock.monotonicMs();
    try {
      latest = await read();
    } catch (error) {
      onFailure(error);
    }
    asking = null;
  }

  return {
    latest() {
      if (asking === null && clock.monotonicMs() - askedAt >= maxAgeMs) asking = ask();
      return latest;
    },
    close: async () => void (await asking),
  };
}
