import type { Style } from "../style.ts";
import { plainText } from "../table.ts";
import type { EventRow } from "./api.ts";

/** How parts of records and attempts read on a terminal. */

/** Characters shown of an answer's first line. */
const shownOfAnswer = 60;

/** `HTTP 404`, or the code of a failure without a response; "" when nothing has failed. */
export const failureWords = ({ errorCode, statusCode }: Pick<EventRow, "errorCode" | "statusCode">): string =>
  errorCode === null ? "" : errorCode === "http_status" ? `HTTP ${statusCode}` : plainText(errorCode);

export function markState(state: string, style: Style): string {
  if (state === "DELIVERED") return style.good(state);
  return state === "FAILED" ? style.bad(state) : state;
}

/** How a receiver's answer begins. */
export function firstLine(text: string): string {
  const [line = ""] = text.trimStart().split("\n");
  const isCut = line.length > shownOfAnswer || text.trim() !== line.trim();
  return plainText(line.trim().slice(0, shownOfAnswer)) + (isCut ? "…" : "");
}
