import fc from "fast-check";
import { type OpenApiDocument, type Schema, sharedSchema } from "../../../support/openapi-check.ts";

/** Values of the world that a field may name, beside what its schema says: ids that are there, URLs that answer. */
export type KnownValues = Readonly<Record<string, readonly unknown[]>>;

/** Texts that have broken programs before. */
export const strangeTexts = [
  "",
  " ",
  "null",
  "undefined",
  "NaN",
  "__proto__",
  "constructor",
  "toString",
  "' or 1=1 --",
  '"); drop table event; --',
  "<script>alert(1)</script>",
  "../../etc/passwd",
  "\u0000",
  "a\r\nSet-Cookie: b=c",
  "\ud800",
  "🦉\u202e\u0301",
  "%00%ff",
  "{{7*7}}",
  "9".repeat(400),
  "x".repeat(5_000),
  "2026-02-30T25:61:61Z",
  "evt_01jc8x2m4e7n9q3s5v7y9a1c3e",
] as const;

const strangeValue: fc.Arbitrary<unknown> = fc.oneof(
  fc.constantFrom<unknown[]>(null, true, false, 0, -1, 1.5, 1e21, -0, 2 ** 53, [], {}, [[]], { a: 1 }, [null]),
  fc.constantFrom(...strangeTexts),
  fc.jsonValue({ maxDepth: 3 }),
);

/** Values that a schema takes, as far as the documents of this program go. */
export function valuesOf(
  document: OpenApiDocument,
  schema: Schema,
  known: KnownValues,
  name = "",
): fc.Arbitrary<unknown> {
  const values = known[name];
  const own = bySchema(document, schema, known);
  return values && values.length > 0 ? fc.oneof({ weight: 3, arbitrary: fc.constantFrom(...values) }, own) : own;
}

function bySchema(document: OpenApiDocument, schema: Schema, known: KnownValues): fc.Arbitrary<unknown> {
  if (typeof schema.$ref === "string") return bySchema(document, sharedSchema(document, schema.$ref), known);
  if (Array.isArray(schema.enum)) return fc.constantFrom(...schema.enum);
  if ("const" in schema) return fc.constant(schema.const);
  switch (schema.type) {
    case "string":
      return texts(schema);
    case "integer":
    case "number":
      return integers(schema);
    case "boolean":
      return fc.boolean();
    case "array": {
      const items = valuesOf(document, (schema.items ?? {}) as Schema, known);
      return fc.array(items, { minLength: Number(schema.minItems ?? 0), maxLength: Number(schema.minItems ?? 0) + 4 });
    }
    case "object":
      return objects(document, schema, known);
    default:
      return fc.jsonValue({ maxDepth: 3 });
  }
}

function texts({ minLength = 0, maxLength = 60, pattern }: Schema): fc.Arbitrary<string> {
  if (typeof pattern === "string") return fc.stringMatching(new RegExp(pattern, "u"), { size: "-1" });
  const range = { minLength: Number(minLength), maxLength: Math.min(Number(maxLength), 60) };
  return fc.oneof(fc.string(range), fc.string({ ...range, unit: "grapheme" }));
}

function integers({ minimum = -1_000_000, maximum = 1_000_000 }: Schema): fc.Arbitrary<number> {
  const [min, max] = [Number(minimum), Math.min(Number(maximum), Number.MAX_SAFE_INTEGER)];
  return fc.oneof(fc.integer({ min, max: Math.max(min, Math.min(max, 2 ** 31 - 1)) }), fc.constantFrom(min, max));
}

function objects(document: OpenApiDocument, schema: Schema, known: KnownValues): fc.Arbitrary<unknown> {
  const properties = Object.entries((schema.properties ?? {}) as Record<string, Schema>);
  if (properties.length === 0)
    return fc.dictionary(fc.string({ maxLength: 8 }), fc.jsonValue({ maxDepth: 3 }), { maxKeys: 4 });
  const fields = Object.fromEntries(properties.map(([name, field]) => [name, valuesOf(document, field, known, name)]));
  return fc.record(fields, { requiredKeys: (schema.required ?? []) as string[] });
}

/** The same with something wrong in it, somewhere. */
export const broken = (values: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> =>
  fc
    .tuple(values, strangeValue, fc.nat(), fc.constantFrom("replace", "remove", "add"))
    .map(([value, strange, at, how]) => {
      const copy: unknown = structuredClone(value);
      const places = placesIn(copy);
      const place = places[at % Math.max(1, places.length)];
      if (!place) return strange;
      const { holder, key } = place;
      if (how === "add" && !Array.isArray(holder)) Object.assign(holder, { [`extra${at % 3}`]: strange });
      else if (how === "remove" && !Array.isArray(holder)) delete holder[key];
      else Object.defineProperty(holder, key, { value: strange, enumerable: true, writable: true, configurable: true });
      return copy;
    });

function placesIn(value: unknown): { holder: Record<string, unknown>; key: string }[] {
  if (typeof value !== "object" || value === null) return [];
  const holder = value as Record<string, unknown>;
  return Object.keys(holder).flatMap((key) => [{ holder, key }, ...placesIn(holder[key])]);
}

/** Bodies that are no JSON, or more of it than anybody wants. */
export const strangeBodies: fc.Arbitrary<string | Uint8Array> = fc.oneof(
  fc.constantFrom<(string | Uint8Array)[]>(
    "",
    " ",
    "{",
    '{"payload":',
    "[1,2",
    "null",
    '"text"',
    "{}}",
    '{"a":1}{"a":2}',
    '\ufeff{"payload":{}}',
    "[".repeat(100_000),
    `{"payload":${"[".repeat(70)}${"]".repeat(70)}}`,
    '{"payload":{},"payload":{}}',
    '{"__proto__":{"tier":"business"},"constructor":{"prototype":{}}}',
    '{"a":1e400,"b":-0,"c":"\\ud800"}',
    "a=1&b=2",
    "x".repeat(70_000),
    new Uint8Array([0xff, 0xfe, 0x7b, 0x00]),
    new Uint8Array([0x7b, 0x22, 0xc3, 0x28, 0x22, 0x7d]),
    new Uint8Array(0),
  ),
  fc.string(),
  fc.uint8Array({ maxLength: 40 }),
);
