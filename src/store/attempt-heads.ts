import type { AnswerHead } from "../domain/delivery.ts";

/** The head of an HTTP response, as it is stored in its row. */
export const headText = (head: AnswerHead | null): string | null =>
  head && JSON.stringify([head.address, head.headers, head.isCut]);

/** Null for a row that has none. */
export function toHead(text: string | null): AnswerHead | null {
  if (text === null) return null;
  const [address, headers, isCut] = JSON.parse(text);
  return { address, headers, isCut };
}
