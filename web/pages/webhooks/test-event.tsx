import { useState } from "preact/hooks";
import { call } from "../../api/client.ts";
import type { Tested, Webhook } from "../../api/types.ts";
import { showControls } from "../../format/controls.ts";
import { outcomeOf, withoutUrl } from "../../format/outcome.ts";
import { duration } from "../../format/time.ts";
import { AnswerBody } from "../../parts/answer-body.tsx";
import { Answered } from "../../parts/answered.tsx";
import { type Attempt, Refusal, useAttempt } from "../../parts/attempt.tsx";
import { Button } from "../../parts/button.tsx";
import { Icon } from "../../parts/icon.tsx";

/** A test of one webhook: what is under way, and how the last one went. */
export interface TestEvent {
  readonly attempt: Attempt;
  readonly answer: Tested | null;
  forget(): void;
}

/** @param bodyOf what is sent; a sample if omitted */
export function useTestEvent(
  { id }: Pick<Webhook, "id">,
  bodyOf?: () => string,
  options?: Parameters<typeof useAttempt>[1],
): TestEvent {
  const [answer, setAnswer] = useState<Tested | null>(null);
  const attempt = useAttempt(async () => {
    setAnswer(null);
    const text = bodyOf?.();
    const path = `/v1/tenants/webhooks/${encodeURIComponent(id)}/test`;
    setAnswer(await call<Tested>(path, { method: "POST", ...(text !== undefined && { text }) }));
  }, options);
  return {
    attempt,
    answer,
    forget() {
      setAnswer(null);
      attempt.forget();
    },
  };
}

/** A test is not a delivery: nothing is stored, and nothing follows from it. */
const words = { DELIVERED: "Acknowledged", PENDING: "Not delivered", FAILED: "Refused" } as const;

export function TestAnswer({ of: { attempt, answer, forget } }: { of: TestEvent }) {
  if (attempt.isBusy) {
    return (
      <p class="test-answer soft" role="status">
        Waiting for a response, 10 s at most…
      </p>
    );
  }
  if (!answer) return attempt.refusal ? <Refusal of={attempt} /> : null;
  const { statusCode, durationMs, error, responseBody, targetWebhook, eventType, typeIsTaken } = answer;
  const { state, rule } = outcomeOf(statusCode);
  return (
    <div class="test-answer" role="status">
      <div class="line">
        <strong>
          <Answered status={statusCode} word={words[state]} />
        </strong>
        <span class="mono">
          {statusCode === null ? "No response" : statusCode} after {duration(durationMs)}
        </span>
        <Button kind="quiet" class="end" onClick={forget} aria-label="Close the result">
          <Icon name="cross" />
        </Button>
      </div>
      <p>
        {error !== null && statusCode === null && `${withoutUrl(error, targetWebhook)}. `}
        {rule} <span class="soft">Tests are neither stored nor retried.</span>
      </p>
      {typeIsTaken === false && (
        <p>
          <strong>
            {eventType == null ? "Events without a type" : `Events of the type ${showControls(eventType)}`} do not go to
            this webhook:
          </strong>{" "}
          its settings list other types. Only a test reaches it.
        </p>
      )}
      {statusCode !== null &&
        (responseBody === "" ? (
          <p class="soft small">The response had no body.</p>
        ) : (
          <figure>
            <figcaption class="soft small">Response body</figcaption>
            <AnswerBody text={responseBody} />
          </figure>
        ))}
    </div>
  );
}
