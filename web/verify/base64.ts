/** Base64 of RFC 4648, strict, using nothing that only servers or only new browsers have. */

/** Standard alphabet, with padding; null when the text is not valid. */
export function fromBase64(text: string): Uint8Array | null {
  if (text.length % 4 !== 0 || !/^[A-Za-z0-9+/]*={0,2}$/.test(text)) return null;
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
}

/** URL alphabet, without padding, as keys are written (RFC 7515, section 2). */
export function fromBase64Url(text: string): Uint8Array | null {
  if (!/^[A-Za-z0-9_-]*$/.test(text) || text.length % 4 === 1) return null;
  const padding = "=".repeat((4 - (text.length % 4)) % 4);
  return fromBase64(text.replaceAll("-", "+").replaceAll("_", "/") + padding);
}

export function toBase64(bytes: Uint8Array): string {
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
}
