/** Texts shortened where they say least. The whole text belongs in the title and on the clipboard. */

const ellipsis = "…";
const shownHead = 4;
const shownTail = 4;

/** `evt_01jc8x2m4e7n9q3s5v7y9a1c3e` → "evt_01jc…1c3e": what it is, how it begins and how it ends. */
export function shortenId(id: string): string {
  const head = id.lastIndexOf("_") + 1 + shownHead;
  if (id.length <= head + ellipsis.length + shownTail) return id;
  return `${id.slice(0, head)}${ellipsis}${id.slice(-shownTail)}`;
}

/** URLs, even within a sentence, without their query values: those may be secrets, and people share their screens. */
export const withoutQuery = (text: string): string => text.replace(/(https?:\/\/[^\s?#]*)\?[^\s#]+/gi, "$1?…");

/**
 * A URL without its query in at most `max` characters, shortened in the middle of its path: the host says whose it is,
 * the end says which one. A host that leaves no room is shortened as well.
 */
export function shortenUrl(whole: string, max: number): string {
  const url = withoutQuery(whole);
  const characters = [...url];
  if (characters.length <= max) return url;
  const host = /^[a-z]+:\/\/[^/?#]*[/?#]?/i.exec(url)?.[0] ?? "";
  const room = max - ellipsis.length;
  const wanted = [...host].length;
  const head = wanted <= room ? wanted : Math.ceil(room / 2);
  const tail = Math.max(0, room - head);
  return `${characters.slice(0, head).join("")}${ellipsis}${characters.slice(characters.length - tail).join("")}`;
}

/**
 * Host and port of a URL: whose it is, without anything that may be secret. Anything that is not a URL is returned as is.
 */
export const hostOf = (url: string): string => /^https?:\/\/([^/?#]+)/i.exec(url)?.[1] ?? url;
