import type { Style } from "../style.ts";
import { plainText } from "../table.ts";
import type { EventRow } from "./api.ts";

/** How parts of a record read on a terminal. */

/** A query may hold secrets, and is long. A webhook's URL contains no spaces, so it ends where they begin. */
const withoutQueries = (text: string): string => text.replace(/(https?:\/\/[^\s?]*)\?\S*/gi, "$1");

/** A webhook's URL, or its id. */
export const webhookWords = (webhook: string): string =>
  webhook === "" ? "no webhook" : plainText(withoutQueries(webhook));

/** Why a delivery failed, in the server's words, with URLs as `webhookWords` shows them. */
export const reasonWords = (reason: string): string => plainText(withoutQueries(reason));

/** `HTTP 404`, or the code of a failure without a response; "" when nothing has failed. */
export const failureWords = ({ errorCode, statusCode }: Pick<EventRow, "errorCode" | "statusCode">): string =>
  errorCode === null ? "" : errorCode === "http_status" ? `HTTP ${statusCode}` : plainText(errorCode);

export function markState(state: string, style: Style): string {
  if (state === "DELIVERED") return style.good(state);
  return state === "FAILED" ? style.bad(state) : state;
}
