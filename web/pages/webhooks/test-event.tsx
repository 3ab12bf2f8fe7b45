import { useState } from "preact/hooks";
import { call } from "../../api/client.ts";
import type { Attempt as Answer, Webhook } from "../../api/types.ts";
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
  readonly answer: Answer | null;
  forget(): void;
}

export function useTestEvent({ id }: Pick<Webhook, "id">): TestEvent {
  const [answer, setAnswer] = useState<Answer | null>(null);
  const attempt = useAttempt(async () => {
    setAnswer(null);
    setAnswer(await call<Answer>(`/v1/tenants/webhooks/${encodeURIComponent(id)}/test`, { method: "POST" }));
  });
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
  const { statusCode, durationMs, error, responseBody, targetWebhook } = answer;
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
