import type { Style } from "../style.ts";
import { plainText } from "../table.ts";
import type { EventRow } from "./api.ts";

/** How parts of a record read on a terminal. */

/** `HTTP 404`, or the code of a failure without a response; "" when nothing has failed. */
export const failureWords = ({ errorCode, statusCode }: Pick<EventRow, "errorCode" | "statusCode">): string =>
  errorCode === null ? "" : errorCode === "http_status" ? `HTTP ${statusCode}` : plainText(errorCode);

export function markState(state: string, style: Style): string {
  if (state === "DELIVERED") return style.good(state);
  return state === "FAILED" ? style.bad(state) : state;
}
