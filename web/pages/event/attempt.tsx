import type { Attempt } from "../../api/types.ts";
import { showControls } from "../../format/controls.ts";
import { extractOf } from "../../format/extract.ts";
import { explainFailure } from "../../format/failure.ts";
import { withoutUrl } from "../../format/outcome.ts";
import { duration, exactTime, exactTimeWithZone } from "../../format/time.ts";
import { AnswerBody } from "../../parts/answer-body.tsx";
import { AnswerHead, retryAfterOf } from "../../parts/answer-head.tsx";
import { Icon } from "../../parts/icon.tsx";
import { now } from "../../parts/time.tsx";

const longestExtract = 160;

/** One attempt: when it was made, what came back, how long it took, and, when opened, the response. */
export function AttemptRow({ attempt }: { attempt: Attempt }) {
  const body = attempt.responseBody;
  const retryAfter = retryAfterOf(attempt);
  const row = (
    <>
      <span class="attempt-number soft">{attempt.number}</span>
      <time class="mono nowrap" dateTime={attempt.startedAt} title={exactTimeWithZone(Date.parse(attempt.startedAt))}>
        {clockTime(Date.parse(attempt.startedAt), now.value)}
      </time>
      <span class={`attempt-status ${isGood(attempt) ? "good" : "bad"}`}>{statusOf(attempt)}</span>
      <span class="attempt-duration">
        <i aria-hidden="true">
          <b style={{ width: `${barWidth(attempt.durationMs)}px` }} />
        </i>
        {duration(attempt.durationMs)}
      </span>
      <span class="attempt-answer mono soft">
        {retryAfter !== null && <b class="retry-after">Retry-After: {showControls(retryAfter)}</b>}
        {showControls(extractOf(body || whyNone(attempt), longestExtract))}
      </span>
    </>
  );
  if (body === "" && !attempt.responseHeaders) return <div class="attempt">{row}</div>;
  return (
    <details class="attempt-more">
      <summary class="attempt" title="Show the response">
        {row}
        <Icon name="next" />
      </summary>
      <AnswerHead {...attempt} />
      {body !== "" && <AnswerBody text={body} />}
    </details>
  );
}

/** A square root, so that 40 ms and 400 ms still look different on a scale that ends at 10 s. */
const barWidth = (ms: number) => Math.max(2, Math.min(48, 48 * Math.sqrt(ms / 10_000)));

/** The server's sentence may say more than the few words of the status, such as what is wrong with a certificate. */
const whyNone = ({ statusCode, error, targetWebhook }: Attempt): string =>
  statusCode === null && error !== null ? withoutUrl(error, targetWebhook) : "";

const isGood = ({ error, statusCode }: Attempt) => error === null && statusCode !== null;

function statusOf(attempt: Attempt): string {
  const { statusCode, error } = attempt;
  if (statusCode !== null) return String(statusCode);
  return error === null ? "No response" : explainFailure(attempt, error).short;
}

/** "14:02:11", or "11-20 14:02:11" on a day other than today. */
export function clockTime(ms: number, nowMs: number): string {
  const text = exactTime(ms);
  return text.slice(text.slice(0, 10) === exactTime(nowMs).slice(0, 10) ? 11 : 5, 19);
}
