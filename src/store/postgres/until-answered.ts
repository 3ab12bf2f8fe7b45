import { isUnavailable, StartupError } from "../../domain/errors.ts";
import { type Clock, sleep } from "../../lib/clock.ts";
import { OutcomeUnknown } from "./faults.ts";

export interface PatienceOptions {
  clock: Clock;
  onFailure(error: unknown): void;
}

/**
 * A server that restarts, or whose standby takes over, is back within this time. Beyond it, whoever started this one should
 * know.
 */
const patienceMs = 30_000;
const pauseMs = 500;

/**
 * Repeats a step of a start for as long as its failures are temporary. The step must be repeatable, even if it was carried
 * out and only its answer was lost.
 *
 * @throws what the step threw: after `patienceMs` its last error, immediately if it is not temporary
 */
export async function whilePassing<T>(
  { clock, onFailure }: PatienceOptions,
  isPassing: (error: unknown) => boolean,
  step: () => Promise<T>,
): Promise<T> {
  const begunAt = clock.monotonicMs();
  for (;;) {
    try {
      return await step();
    } catch (error) {
      if (!isPassing(error)) throw error;
      onFailure(error);
      if (clock.monotonicMs() - begunAt >= patienceMs) throw error;
    }
    await sleep(clock, pauseMs);
  }
}

/**
 * Repeats a step of a start for as long as the database does not answer.
 *
 * @throws StartupError when it has not answered for `patienceMs`; immediately what is not a matter of the connection
 */
export async function untilAnswered<T>(patience: PatienceOptions, step: () => Promise<T>): Promise<T> {
  try {
    return await whilePassing(patience, isUnanswered, step);
  } catch (error) {
    throw isUnanswered(error) ? notStarted() : error;
  }
}

const isUnanswered = (error: unknown): boolean => error instanceof OutcomeUnknown || isUnavailable(error);

const notStarted = () =>
  new StartupError(
    `The database has not answered for ${patienceMs / 1000} s, so this server does not start. ` +
      "Try: see whether PostgreSQL runs and how busy it is, then start again.",
  );
