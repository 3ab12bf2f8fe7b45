import * as v from "valibot";
import { type DomainError, invalid, invalidField } from "../domain/errors.ts";
import { nearest, nearestAmong } from "../lib/nearest.ts";
import type { Schema } from "./endpoint.ts";

/**
 * Checks a value against a model.
 * @throws invalid with one sentence: the field, then the rule. A model writes a rule as the end of that sentence ("must be
 *   …"); a rule with its own code is made by `rule`.
 */
export function check<S extends Schema>(
  schema: S,
  value: unknown,
  subject: "body" | "query" | "path",
): v.InferOutput<S> {
  const result = v.safeParse(schema, value, { abortEarly: true });
  if (result.success) return result.output;
  throw toDomainError(result.issues[0], subject);
}

function toDomainError(issue: v.BaseIssue<unknown>, subject: string): DomainError {
  const field = fieldName(issue);
  if (isMissing(issue)) return invalidField(field, "is required", "field_required");
  const code = issue.type === "raw_check" && issue.expected !== null ? issue.expected : undefined;
  if (field === "" && subject !== "body") return invalid(`The ${subject} ${issue.message}.`, code);
  return invalidField(field, issue.message, code);
}

/** `startTime`, `webhooks[2].webhook_url`; empty for the value as a whole. */
function fieldName(issue: v.BaseIssue<unknown>): string {
  return (issue.path ?? [])
    .map(({ key }, i) => (typeof key === "number" ? `[${key}]` : `${i === 0 ? "" : "."}${shownName(key)}`))
    .join("");
}

/** A name may be the client's own: empty, or as long as a body. */
const shownName = (name: unknown) => String(name).slice(0, longestShownName) || '""';
const longestShownName = 100;

const isMissing = (issue: v.BaseIssue<unknown>) =>
  issue.path !== undefined && issue.kind === "schema" && issue.input === undefined;

/** A rule with its own code, which travels in the issue's `expected`: valibot has no place for it. */
export const rule = <T>(code: string, message: string, holds: (value: T) => boolean) =>
  v.rawCheck<T>(({ dataset, addIssue }) => {
    if (dataset.typed && !holds(dataset.value)) addIssue({ message, expected: code });
  });

/** valibot's own `object` accepts arrays, but a body that is a list is not an object. */
const anyObject = v.custom<Record<string, unknown>>(
  (value) => typeof value === "object" && value !== null && !Array.isArray(value),
  "must be a JSON object",
);

/**
 * An object. Of the fields that are not among the entries, those that are nearly one of them are refused, because a setting that
 * is misspelt would go unnoticed; the others are ignored.
 * @param returned fields of the responses that are nearly one of them too: clients send back what they have read
 */
export const jsonObject = <const Entries extends v.ObjectEntries>(
  entries: Entries,
  returned: readonly string[] = [],
) => {
  const names = Object.keys(entries);
  const nearestField = nearestAmong(names);
  return v.pipe(
    anyObject,
    v.looseObject(entries),
    // Only once the known fields are valid: that one is missing is the clearer error.
    v.rawTransform<Record<string, unknown>, v.InferOutput<v.ObjectSchema<Entries, undefined>>>(
      ({ dataset: { value }, addIssue, NEVER }) => {
        const others = Object.keys(value).filter((name) => !names.includes(name) && !returned.includes(name));
        for (const key of others.slice(0, mostUnknownFields)) {
          const meant = nearestField(shownName(key));
          if (meant === null) continue;
          const message = `is not a field of this request; perhaps ${meant} is meant`;
          addIssue({ message, path: [{ type: "object", origin: "key", input: value, key, value: value[key] }] });
          return NEVER;
        }
        return Object.fromEntries(names.flatMap((name) => (name in value ? [[name, value[name]]] : []))) as never;
      },
    ),
  );
};

/** Those that are looked at in an object. It takes microseconds each, and a body may consist of nothing else. */
const mostUnknownFields = 20;

/** An object that may have no other fields, because one that was meant as a filter would go unnoticed. */
export const closedObject = <const Entries extends v.ObjectEntries>(entries: Entries) =>
  v.pipe(anyObject, v.strictObject(entries, isUnknown("field", entries)));

/**
 * The query of a list. Parameters that are not among the entries are refused, because a list looks the same whether or not it is
 * narrowed as the caller meant.
 * @param elsewhere what to say of a parameter that is expected here and has another place
 */
export const closedQuery = <const Entries extends v.ObjectEntries>(
  entries: Entries,
  elsewhere: ReadonlyMap<unknown, string> = new Map(),
) => {
  const unknown = isUnknown("parameter", entries);
  return v.strictObject(entries, (issue) => elsewhere.get(issue.input) ?? unknown(issue));
};

/**
 * The query of a request that takes everything in its body, and would do more than was meant if it ignored a filter in its URL.
 * @param fields the body's, which a parameter may have been meant as
 * @param elsewhere as in `closedQuery`
 */
export const emptyQuery = (fields: readonly string[], elsewhere: ReadonlyMap<unknown, string> = new Map()) =>
  v.strictObject({}, ({ input }) => elsewhere.get(input) ?? isInBody(input, fields));

function isInBody(input: unknown, fields: readonly string[]): string {
  const meant = nearest(shownName(input), fields);
  const remedy = meant === null ? "its fields belong in the body" : `perhaps the field ${meant} of the body is meant`;
  return `is not a parameter of this request; ${remedy}`;
}

/** The rule that a name which is not among the entries breaks. */
const isUnknown = (noun: "field" | "parameter", entries: v.ObjectEntries) => {
  const names = Object.keys(entries);
  return ({ input }: Pick<v.StrictObjectIssue, "input">) => {
    const meant = nearest(shownName(input), names);
    const remedy = meant === null ? `the ${noun}s are ${names.join(", ")}` : `perhaps ${meant} is meant`;
    return `is not a ${noun} of this request; ${remedy}`;
  };
};

/** A non-empty text. */
export const text = (maxLength: number) =>
  v.pipe(
    v.string("must be a string"),
    v.nonEmpty("must not be empty"),
    v.maxLength(maxLength, `must have at most ${maxLength} characters`),
  );

/** For a text that is stored: PostgreSQL has none with this character, and a SQLite database may be moved there. */
export const withoutZero = v.check((given: string) => !given.includes("\0"), "must not contain the character U+0000");

/** A whole number in a query string, where everything is text. */
export const queryInteger = (min: number, max: number) =>
  v.pipe(
    v.string(),
    v.regex(/^-?\d{1,15}$/, "must be a whole number"),
    v.transform(Number),
    v.minValue(min, `must be at least ${min}`),
    v.maxValue(max, `must be at most ${max}`),
  );
