import { count } from "../../format/number.ts";
import { DisabledWebhook } from "../../parts/disabled-webhook.tsx";
import { Icon } from "../../parts/icon.tsx";
import { Skeleton } from "../../parts/states.tsx";
import { now } from "../../parts/time.tsx";
import { holdsDeliveries } from "../../session/holding.ts";
import { FailingCard } from "./failing-card.tsx";
import { useHold } from "./hold.ts";
import { listUrl } from "./list-url.ts";
import type { Range } from "./range.ts";
import type { Situation } from "./situation.ts";
import { SummarySkeleton } from "./summary.tsx";
import { useBegun } from "./use-begun.ts";
import { verdictOf } from "./verdict.ts";
import { WebhookLines } from "./webhook-lines.tsx";

const mostCards = 6;

/** Whether it works; then what does not work, and why; then what does, one line each. */
export function Standing({
  situation,
  range,
  onChanged,
}: {
  situation: Situation;
  range: Range;
  /** A webhook was changed here. */
  onChanged(): void;
}) {
  const replayed = useBegun(situation.webhooks);
  const { shown, holding } = useHold(situation, replayed.isAny);
  const { from, webhooks, others } = shown;
  const failing = replayed.inPlace(shown.failing);
  const more = failing.length - mostCards;
  const troubled = new Set(failing.map(({ id }) => id));
  return (
    <>
      <VerdictLine situation={situation} />
      {situation.webhooks
        .filter(({ state }) => state === "disabled")
        .map((webhook) => (
          <DisabledWebhook key={webhook.id} webhook={webhook} onEnabled={onChanged} />
        ))}
      {(failing.length > 0 || others > 0) && (
        <div class="stack" {...holding}>
          {failing.slice(0, mostCards).map((one) => (
            <FailingCard
              key={one.id ?? "none"}
              failing={one}
              line={webhooks.find(({ id }) => id === one.id)}
              from={from}
              replayed={replayed}
            />
          ))}
          {(more > 0 || others > 0) && (
            <p class="soft">
              {more > 0 && (
                <>
                  {count(more)} more {more === 1 ? "webhook fails" : "webhooks fail"}.{" "}
                  <a href="/webhooks">See all webhooks</a>.{" "}
                </>
              )}
              {others > 0 && (
                <>
                  {count(others)} more failed in many different ways.{" "}
                  <a href={listUrl({ state: "failed", from })}>See all that failed</a>
                </>
              )}
            </p>
          )}
        </div>
      )}
      {replayed.others}
      <WebhookLines
        lines={webhooks.filter(
          ({ id, state, hasFailed }) => state !== "disabled" && !troubled.has(id) && hasFailed !== true,
        )}
        from={from}
        range={range}
      />
    </>
  );
}

/**
 * Always present and always the same height: a line that came and went would shift what is below it from under the
 * pointer.
 */
function VerdictLine({ situation }: { situation: Situation }) {
  const { text, tone } = verdictOf(situation, now.value, holdsDeliveries());
  if (tone === "bad") {
    return (
      <p class="verdict bar bad" role="status">
        <strong>{text}</strong>
        <a href="/webhooks">{situation.webhooks.length === 0 ? "Register a webhook" : "Check the webhooks"}</a>
      </p>
    );
  }
  return (
    <p class="verdict" role="status">
      {tone === "good" && (
        <span class="state delivered">
          <Icon name="check" />
        </span>
      )}
      <span class={tone === "none" ? "soft" : ""}>{text}</span>
    </p>
  );
}

/** A placeholder in the shape of the content. */
export const StandingSkeleton = () => (
  <div class="stack">
    <p class="verdict">
      <Skeleton width="320px" />
    </p>
    <SummarySkeleton />
  </div>
);
