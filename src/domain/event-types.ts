import { invalidField } from "./errors.ts";

/** Rules, section 9: a webhook's list has at most so many patterns. */
export const maxEventTypePatterns = 50;

/** Rules, section 6: what an event may name as its type, in UTF-16 code units. */
export const maxEventTypeLength = 200;

/** No longer than a type can be. */
const maxPatternLength = maxEventTypeLength;

/** Events that the program makes itself have types below this word. */
const ownPrefix = "postrider.";

const pattern = /^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*(\.\*)?$/;

/**
 * Whether an event may bear this type: text that any store keeps and any screen shows as it is. What a payload has in its
 * place is no type, and no fault: payloads are the tenant's own.
 */
export const isEventType = (text: string): boolean =>
  text.length > 0 && text.length <= maxEventTypeLength && isPlain(text);

/** Well-formed, so that it is the same after it was UTF-8, and without control characters. */
export const isPlain = (text: string): boolean => text.isWellFormed() && !controlCharacter.test(text);

// biome-ignore lint/suspicious/noControlCharactersInRegex: that is what it looks for
const controlCharacter = /[\u0000-\u001f\u007f-\u009f]/;

/**
 * What a webhook takes: words joined by dots, as the types are, and `order.*` for all types below `order`.
 *
 * @param field by which the entry's list is known to the client
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
        "must be words of letters, digits, _ and - joined by dots, and may end with .*, such as order.paid or order.*",
        "invalid_event_type",
      );
    }
  });
}

/**
 * Whether a webhook takes an event. Without a list it takes all of the tenant's own, those without a type too; a list takes
 * what it names. What the program itself has to tell (`postrider.…`) goes only to those that ask for it.
 */
export function takes(patterns: readonly string[] | null, type: string | null): boolean {
  if (patterns === null) return type === null || !type.startsWith(ownPrefix);
  if (type === null) return false;
  return patterns.some((one) => (one.endsWith(".*") ? type.startsWith(one.slice(0, -1)) : one === type));
}

/** Types that no event of a tenant may claim to have. */
export const isReserved = (type: string): boolean => type.startsWith(ownPrefix);
