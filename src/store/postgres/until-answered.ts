import { type DomainError, isUnavailable, StartupError, shuttingDown } from "../../domain/errors.ts";
import { type Clock, sleep } from "../../lib/clock.ts";
import { messageOf } from "../../lib/error-message.ts";
import { OutcomeUnknown } from "./faults.ts";
import { addressOf, knownReasonOf } from "./unusable.ts";

export interface WaitOptions {
  clock: Clock;
  onFailure(error: unknown): void;
  /** Ends the wait immediately. */
  signal?: AbortSignal;
}

export interface PatienceOptions extends WaitOptions {
  /** Of the database. */
  url: string;
}

/**
 * A server that restarts, or whose standby takes over, is back within this time. Beyond it, whoever started this one should
 * know.
 */
const patienceMs = 30_000;
const pauseMs = 500;

/**
 * Repeats a step of a start for as long as its failures are temporary. The step must be repeatable, even if it was carried
 * out and only its answer was lost. A signal does not wait for the step that is under way.
 *
 * @throws what the step threw: after `patienceMs` its last error, immediately if it is not temporary; `shutting_down` when the
 * signal came first
 */
export async function whilePassing<T>(
  options: WaitOptions,
  isPassing: (error: unknown) => boolean,
  step: () => Promise<T>,
): Promise<T> {
  const { signal } = options;
  const { promise: stopped, reject } = Promise.withResolvers<never>();
  const stop = () => reject(shuttingDown());
  signal?.addEventListener("abort", stop);
  if (signal?.aborted) stop();
  try {
    return await Promise.race([stopped, repeat(options, isPassing, step)]);
  } finally {
    signal?.removeEventListener("abort", stop);
  }
}

async function repeat<T>(
  { clock, onFailure, signal }: WaitOptions,
  isPassing: (error: unknown) => boolean,
  step: () => Promise<T>,
): Promise<T> {
  const begunAt = clock.monotonicMs();
  while (!signal?.aborted) {
    try {
      return await step();
    } catch (error) {
      if (!isPassing(error)) throw error;
      onFailure(error);
      if (clock.monotonicMs() - begunAt >= patienceMs) throw error;
    }
    await sleep(clock, pauseMs);
  }
  throw shuttingDown();
}

/**
 * Repeats a step of a start for as long as the database does not answer.
 *
 * @throws StartupError when it has not answered for `patienceMs`; immediately what is not a matter of the connection;
 * `shutting_down` when the signal came first
 */
export async function untilAnswered<T>(patience: PatienceOptions, step: () => Promise<T>): Promise<T> {
  try {
    return await whilePassing(patience, isUnanswered, step);
  } catch (error) {
    throw isUnanswered(error) && !patience.signal?.aborted ? await notStarted(error, patience.url) : error;
  }
}

const isUnanswered = (error: unknown): error is OutcomeUnknown | DomainError =>
  error instanceof OutcomeUnknown || isUnavailable(error);

async function notStarted({ cause }: OutcomeUnknown | DomainError, url: string): Promise<StartupError> {
  const seconds = patienceMs / 1000;
  const reason = await knownReasonOf(cause, url);
  if (reason !== null) return new StartupError(`After ${seconds} s, the database at ${addressOf(url)} still ${reason}`);
  const said = cause === undefined ? "" : ` (${messageOf(cause)})`;
  return new StartupError(
    `The database has not answered for ${seconds} s${said}, so this server does not start. ` +
      "Try: see whether PostgreSQL runs and how busy it is, then start again.",
  );
}
