import type { ComponentProps } from "preact";
import { useState } from "preact/hooks";
import { ApiError } from "../api/client.ts";
import { duration } from "../format/time.ts";
import { reopenings } from "../stream/reopenings.ts";
import { Button } from "./button.tsx";
import { now } from "./time.tsx";

/** An action that the server may refuse, once or for a while. */
export interface Attempt {
  run(): void;
  readonly isBusy: boolean;
  readonly refusal: ApiError | null;
  /** Until the server accepts it again; 0: now. */
  readonly waitSeconds: number;
  /** What is wrong with a field, if the refusal names it. */
  wrong(field: string): string | null;
  forget(): void;
}

/**
 * @param action what is tried; it throws an ApiError when it is refused
 * @param fields that show a refusal themselves, by their names in the API
 * @param words for this one place, by error code
 */
export function useAttempt(
  action: () => Promise<void>,
  { fields = [], words = {} }: { fields?: readonly string[]; words?: Readonly<Record<string, string>> } = {},
): Attempt {
  const [isBusy, setBusy] = useState(false);
  const [latest, setRefused] = useState<Refused | null>(null);

  async function run(): Promise<void> {
    if (isBusy) return;
    setBusy(true);
    setRefused(null);
    try {
      await action();
    } catch (error) {
      // The shared clock lags by up to a second, and nobody should be told to wait longer than the server asked.
      setRefused({ error: toApiError(error, words), at: now.peek(), reopenings: reopenings.peek() });
    } finally {
      setBusy(false);
    }
  }

  // A failure to reach the server is over once the page is connected again.
  const refused = latest?.error.status === 0 && reopenings.value > latest.reopenings ? null : latest;
  const broken = refused?.error.broken ?? null;
  const shown = broken !== null && fields.includes(broken.field) ? broken : null;
  return {
    run: () => void run(),
    isBusy,
    refusal: shown === null ? (refused?.error ?? null) : null,
    waitSeconds: refused === null ? 0 : secondsLeft(refused),
    // The label next to it names the field.
    wrong: (field) => (shown?.field === field ? `This ${shown.rule}.` : null),
    forget: () => setRefused(null),
  };
}

interface Refused {
  readonly error: ApiError;
  readonly at: number;
  /** How often the stream had reopened by then. */
  readonly reopenings: number;
}

/** Only a rate limit makes the user wait; otherwise the clock is not read, so it causes no re-render. */
function secondsLeft({ error: { status, retryAfterSeconds }, at }: Refused): number {
  if (status !== 429 || retryAfterSeconds === null) return 0;
  return Math.max(0, Math.ceil(retryAfterSeconds - (now.value - at) / 1000));
}

function toApiError(error: unknown, words: Readonly<Record<string, string>>): ApiError {
  if (!(error instanceof ApiError)) return new ApiError(String(error), 0, "defect", null);
  const { message, status, code, retryAfterSeconds, broken } = error;
  return new ApiError(words[code] ?? message, status, code, retryAfterSeconds, broken);
}

/** Its button: runs it, or submits the form that does; busy while it runs, and off until the server accepts it again. */
export function AttemptButton({
  of: attempt,
  disabled = false,
  ...rest
}: { of: Attempt } & ComponentProps<typeof Button>) {
  const runs = rest.type === "submit" ? {} : { onClick: attempt.run };
  return (
    <Button
      changes
      kind="primary"
      {...runs}
      {...rest}
      busy={attempt.isBusy}
      disabled={disabled || attempt.waitSeconds > 0}
    />
  );
}

/** Why it was refused, and how long to wait. The countdown is a timer, or screen readers would read it out every second. */
export function Refusal({ of: { refusal, waitSeconds } }: { of: Attempt }) {
  if (refusal === null) return null;
  if (refusal.status !== 429) {
    return (
      <p class="notice bad" role="alert">
        {refusal.message}
      </p>
    );
  }
  return (
    <div class="notice bad">
      <p role="alert">{refusal.message}</p>
      <p role="timer">
        {waitSeconds > 0 ? `You can try again in ${duration(waitSeconds * 1000)}.` : "You can try again now."}
      </p>
    </div>
  );
}
