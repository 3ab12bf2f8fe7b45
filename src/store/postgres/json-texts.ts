import type { JsonText } from "../../domain/event.ts";

/**
 * Texts that are shown as JSON. PostgreSQL's own `to_json` accepts none with U+0000 in it, and its answer would be turned
 * into a string and back.
 */

const quote = 0x22;
const backslash = 0x5c;
const space = 0x20;
const zero = 0x30;
const letterU = 0x75;
/** `\u00xx` */
const escapedBytes = 6;
const hex = new TextEncoder().encode("0123456789abcdef");

/** Converts a text to `JsonText` without creating a string. */
export function jsonTextOf(utf8: Uint8Array): JsonText {
  let length = utf8.length + 2;
  for (const byte of utf8) {
    if (byte < space) length += escapedBytes - 1;
    else if (byte === quote || byte === backslash) length += 1;
  }
  const text = new Uint8Array(length);
  text[0] = quote;
  text[length - 1] = quote;
  if (length === utf8.length + 2) {
    text.set(utf8, 1);
    return text;
  }
  let at = 1;
  for (const byte of utf8) {
    if (byte < space) {
      text.set([backslash, letterU, zero, zero, hex[byte >> 4] ?? zero, hex[byte & 15] ?? zero], at);
      at += escapedBytes;
      continue;
    }
    if (byte === quote || byte === backslash) {
      text[at] = backslash;
      at += 1;
    }
    text[at] = byte;
    at += 1;
  }
  return text;
}
