import type { AnswerHead } from "../../domain/delivery.ts";

/** Limit for names and values together: a head may be 16 KB, and each attempt that fails keeps one. */
const keptCharacters = 4096;

/** The part of an answer's head that is kept: whole headers, in order, while they fit (rules, section 7). */
export function answerHeadOf(rawHeaders: readonly string[], address: string | undefined): AnswerHead {
  const headers: [string, string][] = [];
  let room = keptCharacters;
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const [name = "", value = ""] = rawHeaders.slice(i, i + 2);
    room -= name.length + value.length;
    if (room < 0) return { address: address ?? null, headers, isCut: true };
    headers.push([name, value]);
  }
  return { address: address ?? null, headers, isCut: false };
}
