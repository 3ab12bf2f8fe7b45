import { type DomainError, invalidField } from "./errors.ts";

/** A tenant's own headers that every delivery to a webhook carries: names as they were written, in their order. */
export type OwnHeaders = readonly (readonly [name: string, value: string])[];

/** Rules, section 14. */
export const mostOwnHeaders = 20;
/** Names and values together: every delivery carries them, in memory too. */
const mostOwnHeaderBytes = 4096;

/** RFC 9110: a name is a token, and a value is text that may have spaces and tabs inside. Beyond ASCII there is no agreement. */
const token = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const fieldValue = /^[!-~](?:[\t -~]*[!-~])?$/;

/** Headers of deliveries and of their connection: about the body, who sends it, how it is framed and routed. */
const reserved: ReadonlySet<string> = new Set([
  ...["accept-encoding", "connection", "date", "expect", "host", "http2-settings", "keep-alive", "te", "trailer"],
  ...["proxy-authenticate", "proxy-authorization", "proxy-connection", "transfer-encoding", "upgrade", "user-agent"],
  ...["traceparent", "tracestate"],
]);
const reservedBeginnings = ["content-", "service-", "webhook-"];

/** Stands for a value in answers. No value contains its first character. */
const mask = "••••";
/** The last characters of a shorter value would reveal too much. */
const shownFrom = 12;

/** What is shown of a value: its end, if it is long enough to be told from others by that. */
export const maskOf = (value: string): string => (value.length < shownFrom ? mask : mask + value.slice(-4));

/** The headers as answers show them: names whole, values masked. */
export const masked = (headers: OwnHeaders): OwnHeaders => headers.map(([name, value]) => [name, maskOf(value)]);

/** Whether it stands for a stored value. */
export const isMask = (value: string) => value.startsWith(mask);

/**
 * Judges headers as a client gives them; a value may be a mask.
 * @param field of the request
 * @throws invalid `invalid_header`, `reserved_header`
 */
export function checkOwnHeaders(headers: OwnHeaders, field: string): void {
  if (headers.length > mostOwnHeaders) {
    throw invalidField(field, `must have at most ${mostOwnHeaders} headers, not ${headers.length}`, "invalid_header");
  }
  const names = new Set<string>();
  for (const [name, value] of headers) {
    const lower = name.toLowerCase();
    const called = `has the name ${JSON.stringify(name.slice(0, 100))}`;
    if (!token.test(name)) throw invalidField(field, `${called}, which is no name of a header`, "invalid_header");
    if (reserved.has(lower) || reservedBeginnings.some((beginning) => lower.startsWith(beginning))) {
      throw invalidField(field, `${called}, which the delivery itself sets; choose another`, "reserved_header");
    }
    if (names.has(lower)) throw invalidField(field, `${called} twice; case makes no difference`, "invalid_header");
    names.add(lower);
    if (!isMask(value) && !fieldValue.test(value)) throw badValue(name, field);
  }
  // A mask says nothing about the length of its value, which `unmask` counts.
  checkLength(
    headers.map(([name, value]) => [name, isMask(value) ? "" : value]),
    field,
  );
}

function checkLength(headers: OwnHeaders, field: string): void {
  const bytes = headers.reduce((sum, [name, value]) => sum + name.length + value.length, 0);
  if (bytes <= mostOwnHeaderBytes) return;
  const rule = `must have at most ${mostOwnHeaderBytes} characters, names and values together`;
  throw invalidField(field, rule, "invalid_header");
}

// The value itself appears in no message: it may be a secret with a typo.
const badValue = (name: string, field: string): DomainError =>
  invalidField(
    field,
    `has a value of ${name} that must be of visible ASCII characters, with spaces and tabs only between them`,
    "invalid_header",
  );

/**
 * Replaces masks, which a client sends back as it got them, by the stored values. "same": nothing else was sent.
 * @param stored of the webhook with this URL
 * @throws invalid `invalid_header` for a mask of no stored value, or if the values behind the masks make it too much
 */
export function unmask(headers: OwnHeaders, stored: OwnHeaders, field: string): OwnHeaders | "same" {
  const known = new Map(stored.map(([name, value]) => [name.toLowerCase(), value]));
  const full = headers.map(([name, value]): OwnHeaders[number] => {
    if (!isMask(value)) return [name, value];
    const kept = known.get(name.toLowerCase());
    if (kept !== undefined && maskOf(kept) === value) return [name, kept];
    const rule = `has a masked value of ${name}, which stands for none that is stored; send the value itself`;
    throw invalidField(field, rule, "invalid_header");
  });
  const isSame = headers.length === known.size && headers.every(([, value]) => isMask(value));
  if (isSame && headers.length > 0) return "same";
  checkLength(full, field);
  return full;
}
