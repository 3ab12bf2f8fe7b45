import { StartupError } from "../../domain/errors.ts";
import { formatDuration } from "../../lib/duration.ts";
import { refusal } from "../refusal.ts";
import { plainText } from "../table.ts";
import { TemporaryFailure } from "./failure.ts";
import type { Reply, ServerClient } from "./server.ts";

/** Reads answers, for the commands that are clients. */

/** A text field of an answer's object; null when there is no such field. */
export function textIn(json: unknown, name: string): string | null {
  if (typeof json !== "object" || json === null || !Object.hasOwn(json, name)) return null;
  const value = json[name as keyof typeof json] as unknown;
  return typeof value === "string" ? value : null;
}

/** How the API says when to come back: in a header, which nobody sees on a command line. */
const whenInHeader = /(?:;|, or) retry after the number of seconds in Retry-After\b/;

/** The server's own words, made safe for a terminal; null when something else has answered. */
function wordsIn(json: unknown): string | null {
  const words = textIn(json, "message");
  return words === null ? null : plainText(words.replace(whenInHeader, ""));
}

/** What to do when the message leaves only that to the header. */
function remedyInHeader({ json, retryAfterMs }: Reply): string | undefined {
  const isThere = retryAfterMs !== null && whenInHeader.test(textIn(json, "message") ?? "");
  return isThere ? `again in ${formatDuration(retryAfterMs)}.` : undefined;
}

/** The quota stays exceeded until the end of the month, and data stays damaged until a backup is restored. */
const lastingCodes: readonly (string | null)[] = ["quota_exceeded", "storage_damaged"];
/** They do not pass with time: not implemented, HTTP version not supported. */
const lastingStatuses: readonly number[] = [501, 505];

/** Whether Postrider itself has answered, not something on the way to it. */
const isOwn = (json: unknown) => textIn(json, "message") !== null && textIn(json, "code") !== null;

/**
 * Whether a request with this answer may have taken effect. Of failures at a server, only Postrider's own 503 rules that out: a
 * proxy also answers 503 when its connection broke after the request had got through.
 */
export const mayHaveTakenEffect = ({ status, json }: Reply): boolean =>
  status >= 500 && !(status === 503 && isOwn(json));

/** Whatever stands before a server has statuses of its own for one that is away, such as 521 and 524. */
const isTemporary = ({ status, json }: Reply): boolean =>
  isOwn(json)
    ? (status === 429 || status === 503) && !lastingCodes.includes(textIn(json, "code"))
    : status === 429 || (status >= 500 && !lastingStatuses.includes(status));

/** The failure that an answer stands for when repeating the request may succeed; null when it will not. */
export function temporaryFailureIn(reply: Reply): TemporaryFailure | null {
  if (!isTemporary(reply)) return null;
  const { status, json, retryAfterMs } = reply;
  const words = wordsIn(json);
  return new TemporaryFailure(`answered ${status}${words === null ? "" : ` (${words})`}`, {
    retryAfterMs,
    mayHaveArrived: mayHaveTakenEffect(reply),
    answer: { status, words },
  });
}

/**
 * For an answer that is final: the message and what to do.
 * @param remedy what to do when the message itself does not say it
 */
export function refusalOf(
  server: Pick<ServerClient, "url">,
  reply: Reply,
  remedy = remedyInHeader(reply),
): StartupError {
  const { status, json } = reply;
  const words = wordsIn(json);
  const code = textIn(json, "code");
  if (words !== null) return refusal(remedy === undefined ? words : `${words} Try: ${remedy}`, { status, code });
  return new StartupError(
    `${server.url} answered ${status}, which does not look like Postrider. Try: --server with the address of your server.`,
  );
}
