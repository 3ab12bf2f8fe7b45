const maxLength = 200;
/** How much is examined: the patterns take more than linear time, and the text may be as long as a whole answer. */
const maxReadLength = 400;

/** What is masked, most specific first. */
const secrets = [
  // Page addresses, with and without a scheme: an access code is part of one.
  /\b[a-z][a-z0-9+.-]*:\/\/\S*/gi,
  /\S+\.\S*\/\S+/g,
  // E-mail addresses, escaped ones too.
  /\S+(?:@|%40)\S+/gi,
  // Keys and object codes: `sk_live_…`, `AUTH_…`, `CUS_…`.
  /\b(?:[sp]k_(?:live|test)|[A-Z]+)_\w+/g,
  // Access codes, card numbers, telephone numbers: long, and not words. Groups of digits count as one.
  /\d(?:[ -]?\d){7,}/g,
  /\b(?=\w*\d)\w{8,}/g,
];

/**
 * A text from Paystack, made safe to log and show. Its texts are sentences for people and may repeat anything that was
 * sent, so whatever is not plain words is masked.
 */
export function publicText(text: string): string {
  const line = text
    .slice(0, maxReadLength)
    .replace(/[\p{Cc}\p{Cf}\s]+/gu, " ")
    .trim();
  return secrets.reduce((masked, secret) => masked.replace(secret, "[…]"), line).slice(0, maxLength);
}
