import { invalidField } from "../domain/errors.ts";

/** Preconditions (RFC 9110, sections 8.8.3 and 13.1.1): a change that is only made to what the client has read. */

export const etag = (tag: string): string => `"${tag}"`;

const one = String.raw`(?:W/)?"[\x21\x23-\x7e]*"`;
const list = new RegExp(String.raw`^\s*${one}(?:\s*,\s*${one})*\s*$`);

/**
 * The tags of `If-Match`. Weak ones are left out: they never match.
 * @returns null if any will do
 * @throws invalid for anything but `*` or tags in quotation marks
 */
export function tagsIn(ifMatch: string | null): readonly string[] | null {
  if (ifMatch === null || ifMatch.trim() === "*") return null;
  if (!list.test(ifMatch))
    throw invalidField("If-Match", "must be *, or the ETag of a response, with its quotation marks");
  return [...ifMatch.matchAll(/(W\/)?"([^"]*)"/g)].flatMap(([, weak, tag]) => (weak ? [] : (tag ?? "")));
}
