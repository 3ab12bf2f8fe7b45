const maxLength = 200;
/** What is looked at: the patterns take longer than linear time, and the text may be as long as an answer. */
const maxReadLength = 400;

/** What is masked, most specific first. */
const secrets = [
  // Addresses of pages, with and without a scheme: an access code is a part of one.
  /\b[a-z][a-z0-9+.-]*:\/\/\S*/gi,
  /\S+\.\S*\/\S+/g,
  // E-mail addresses, escaped ones too.
  /\S+(?:@|%40)\S+/gi,
  // Keys and codes of things: `sk_live_…`, `AUTH_…`, `CUS_…`.
  /\b(?:[sp]k_(?:live|test)|[A-Z]+)_\w+/g,
  // Access codes, card numbers, telephone numbers: long, and not words. Groups of digits count as one.
  /\d(?:[ -]?\d){7,}/g,
  /\b(?=\w*\d)\w{8,}/g,
];

/**
 * A text of Paystack's as it may be logged and shown. Its texts are sentences for people and repeat what was sent at
 * will, so whatever is not plain words is masked.
 */
export function publicText(text: string): string {
  const line = text
    .slice(0, maxReadLength)
    .replace(/[\p{Cc}\p{Cf}\s]+/gu, " ")
    .trim();
  return secrets.reduce((masked, secret) => masked.replace(secret, "[…]"), line).slice(0, maxLength);
}
