import { toJsonSchema } from "@valibot/to-json-schema";
import { isoTimeForm } from "../../lib/iso-time.ts";
import type { Schema } from "../endpoint.ts";

/** The part of JSON Schema, draft 2020-12, that this program writes. */
export interface JsonSchema {
  type?: string | string[];
  description?: string;
  properties?: Record<string, JsonSchema>;
  required?: string[];
  propertyNames?: object;
  [keyword: string]: unknown;
}

/**
 * The JSON Schema of what a client sends or receives. A string that the model transforms stays a string, except that digits
 * in a query are an integer: that is how a document writes them.
 * @throws Error for a schema or an action that is not handled here
 */
export function jsonSchemaOf(schema: Schema): JsonSchema {
  const { $schema: _, ...converted } = toJsonSchema(schema as Parameters<typeof toJsonSchema>[0], {
    target: "draft-2020-12",
    // `jsonObject` is a pipe of two schemas, which the converter reports as an error; the overrides throw for all other
    // errors.
    errorMode: "ignore",
    overrideSchema: ({ valibotSchema, jsonSchema, errors }) => {
      // "Is an object", which precedes the schema that says which.
      if (valibotSchema.type === "custom") return jsonSchema;
      refuse(errors);
      return tidy(jsonSchema as JsonSchema) as typeof jsonSchema;
    },
    overrideAction: ({ valibotAction, jsonSchema, errors }) => {
      const { type } = valibotAction as { type: string };
      if (type === "transform" && isDigits(jsonSchema as JsonSchema)) {
        const { pattern: _digits, ...rest } = jsonSchema;
        return { ...rest, type: "integer" };
      }
      if (unwritten.has(type)) return jsonSchema;
      refuse(errors);
      return undefined;
    },
  }) as JsonSchema;
  return converted;
}

/** Rules that JSON Schema cannot express. Where they matter to a client, the description states them. */
const unwritten: ReadonlySet<string> = new Set(["check", "raw_check", "raw_transform", "max_bytes"]);

const isDigits = ({ type, pattern }: JsonSchema) => type === "string" && /^\^-\?\\d/.test(String(pattern));

/** Drops what says nothing (that no field is required, that field names are strings), and adds what generators miss. */
function tidy({ required = [], propertyNames, ...schema }: JsonSchema): JsonSchema {
  // Generators of clients (openapi-python-client 0.29) write invalid code for `const: true` alone.
  if (typeof schema.const === "boolean") schema.type = "boolean";
  if (schema.type === "integer" && typeof schema.default === "string") schema.default = Number(schema.default);
  for (const [name, property] of Object.entries(schema.properties ?? {})) nameForm(name, property);
  const namesAreChecked = propertyNames !== undefined && Object.keys(propertyNames).some((word) => word !== "type");
  return { ...schema, ...(required.length > 0 && { required }), ...(namesAreChecked && { propertyNames }) };
}

/**
 * The format of a string, by the name of its field: each name has one meaning throughout. The models check the same in their
 * own words, with messages that JSON Schema has no place for.
 */
const forms: readonly [names: RegExp, form: JsonSchema][] = [
  [/(?:^at|At|_at|_since|_used|_until|Timestamp|^searchedTo)$/, { format: "date-time" }],
  [/^(?:from|to|startTime|endTime)$/, { pattern: isoTimeForm }],
  [/^email$/, { format: "email" }],
  [/^(?:url|payment_url|baseUrl)$/, { format: "uri" }],
  [/^webhook_url$/, { format: "uri", pattern: "^[Hh][Tt][Tt][Pp][Ss]?://", maxLength: 2048 }],
  [/password$/, { format: "password" }],
];

function nameForm(name: string, property: JsonSchema): void {
  const form = forms.find(([names]) => names.test(name))?.[1];
  const texts = [property, ...((property.anyOf as JsonSchema[] | undefined) ?? [])].filter(
    ({ type }) => type === "string",
  );
  if (form) for (const text of texts) Object.assign(text, { ...form, ...text });
}

function refuse(errors: readonly string[] | undefined): void {
  if (errors !== undefined) throw new Error(`The schema cannot be expressed in the document: ${errors.join(" ")}`);
}
