import { invalidField } from "./errors.ts";

/** Rules, section 9: the most patterns that a webhook's list may have. */
export const maxEventTypePatterns = 50;

/** Rules, section 6: what an event may name as its type, in UTF-16 code units. */
export const maxEventTypeLength = 200;

/** No longer than a type can be. */
const maxPatternLength = maxEventTypeLength;

/** The types of events that the program itself makes start with this. */
const ownPrefix = "postrider.";

const pattern = /^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*(\.\*)?$/;

/**
 * Whether an event may have this type: text that any store keeps and any screen shows unchanged. Anything else that a payload
 * has in that place is not a type, but not an error either: payloads are the tenant's own.
 */
export const isEventType = (text: string): boolean =>
  text.length > 0 && text.length <= maxEventTypeLength && isPlain(text);

/** Well-formed, so that it survives a round trip through UTF-8, and without control characters. */
export const isPlain = (text: string): boolean => text.isWellFormed() && !controlCharacter.test(text);

// biome-ignore lint/suspicious/noControlCharactersInRegex: that is what it looks for
const controlCharacter = /[\u0000-\u001f\u007f-\u009f]/;

/**
 * Checks what a webhook takes: words joined by dots, like the types, and `order.*` for all types below `order`.
 *
 * @param field by which the client knows the entry's list
 * @throws DomainError `invalid`
 */
export function checkPatterns(patterns: readonly string[], field: string): void {
  if (patterns.length === 0) {
    throw invalidField(field, "must not be empty; null takes every event", "event_types_empty");
  }
  if (patterns.length > maxEventTypePatterns) {
    throw invalidField(field, `must have at most ${maxEventTypePatterns} patterns`, "too_many_event_types");
  }
  patterns.forEach((text, i) => {
    if (text.length > maxPatternLength || !pattern.test(text)) {
      throw invalidField(
        `${field}[${i}]`,
        `must be words of letters, digits, _ and - joined by dots, and may end with .*, such as order.paid or order.*${text === "*" ? "; null takes every event" : ""}`,
        "invalid_event_type",
      );
    }
  });
}

/**
 * Whether a webhook takes an event. Without a list it takes all of the tenant's own, including those without a type; a
 * list takes what it names. The program's own events (`postrider.…`) go only to webhooks that ask for them.
 */
export function takes(patterns: readonly string[] | null, type: string | null): boolean {
  if (patterns === null) return type === null || !type.startsWith(ownPrefix);
  if (type === null) return false;
  return patterns.some((one) => (one.endsWith(".*") ? type.startsWith(one.slice(0, -1)) : one === type));
}

/** Types that no tenant's event may claim. */
export const isReserved = (type: string): boolean => type.startsWith(ownPrefix);
