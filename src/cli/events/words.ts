import type { Style } from "../style.ts";
import { plainText } from "../table.ts";
import { reasonWords } from "../webhook-words.ts";
import type { AttemptRow, EventRow } from "./api.ts";

/** How parts of records and attempts read on a terminal. */

/** Characters shown of an answer. */
const shownOfAnswer = 60;

/** `HTTP 404`, or the code of a failure without a response; "" when nothing has failed. */
export const failureWords = ({ errorCode, statusCode }: Pick<EventRow, "errorCode" | "statusCode">): string =>
  errorCode === null ? "" : errorCode === "http_status" ? `HTTP ${statusCode}` : plainText(errorCode);

export function markState(state: string, style: Style): string {
  if (state === "DELIVERED") return style.good(state);
  return state === "FAILED" ? style.bad(state) : state;
}

/** How a receiver's answer begins, on one line: the first line of JSON that is indented is only a bracket. */
export function answerStart(text: string): string {
  const line = text.trim().replace(/\s+/g, " ");
  return plainText(line.slice(0, shownOfAnswer)) + (line.length > shownOfAnswer ? "…" : "");
}

/** Why an attempt failed, and where it was redirected to: without a query or a password, which may be secret. */
export function attemptReason(reason: string, attempt: AttemptRow | undefined): string {
  const target = attempt && redirectTarget(attempt);
  const words = reasonWords(reason);
  return target ? `${words} to ${plainText(target.origin + target.pathname)}; redirects are not followed` : words;
}

function redirectTarget({ statusCode, targetWebhook, responseHeaders = [] }: AttemptRow): URL | null {
  if (statusCode === null || statusCode < 300 || statusCode > 399) return null;
  const location = responseHeaders.find(({ name }) => name.toLowerCase() === "location");
  const target = location ? URL.parse(location.value, targetWebhook) : null;
  return target && /^https?:$/.test(target.protocol) ? target : null;
}
