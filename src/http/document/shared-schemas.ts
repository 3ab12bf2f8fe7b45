import type { JsonSchema } from "./json-schema.ts";

/** A value of a JSON document. */
type Json = unknown;

/** What a model calls itself (`v.title`), and the form it has in the document. */
export type SharedSchemas = Record<string, JsonSchema>;

export interface Shared {
  /** The document, with references. */
  readonly value: Json;
  readonly schemas: SharedSchemas;
}

/**
 * Puts each schema with a title once among the document's own, under that name, and a reference wherever it stood. Generators
 * of clients make one type of it then, with that name, where they would make one for every response.
 * @throws Error if two different schemas have the same title
 */
export function shareSchemas(document: Json): Shared {
  const schemas: SharedSchemas = {};

  function walk(value: Json): Json {
    if (Array.isArray(value)) return value.map(walk);
    if (typeof value !== "object" || value === null) return value;
    // An example is data: a title in it names nothing.
    const copy = Object.fromEntries(
      Object.entries(value).map(([name, one]) => [name, name === "example" ? one : walk(one)]),
    );
    return isNamed(copy) ? share(copy) : copy;
  }

  function share({ title, ...schema }: NamedSchema): JsonSchema {
    const known = schemas[title];
    if (known !== undefined && !Bun.deepEquals(known, schema)) throw new Error(`Two schemas have the title ${title}.`);
    schemas[title] = schema;
    return { $ref: `#/components/schemas/${title}` };
  }

  const value = walk(document);
  return { value, schemas };
}

type NamedSchema = JsonSchema & { title: string };

/** Told from the description of the interface, which has a title, too, by its type. */
const isNamed = (value: Record<string, Json>): value is NamedSchema =>
  typeof value.title === "string" && value.type === "object";
