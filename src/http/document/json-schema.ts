import { toJsonSchema } from "@valibot/to-json-schema";
import { isoTimeForm } from "../../lib/iso-time.ts";
import type { Schema } from "../endpoint.ts";

/** JSON Schema, draft 2020-12, as far as this program writes it. */
export interface JsonSchema {
  type?: string | string[];
  description?: string;
  properties?: Record<string, JsonSchema>;
  required?: string[];
  propertyNames?: object;
  [keyword: string]: unknown;
}

/**
 * The JSON Schema of what a client sends or receives. A text that the model turns into something else stays a text,
 * except that digits in a query are an integer: so they are written in a document.
 * @throws Error for a schema or an action that nobody has thought of here
 */
export function jsonSchemaOf(schema: Schema): JsonSchema {
  const { $schema: _, ...converted } = toJsonSchema(schema as Parameters<typeof toJsonSchema>[0], {
    target: "draft-2020-12",
    // `jsonObject` is a pipe of two schemas, about which the converter complains; the overrides throw for the rest.
    errorMode: "ignore",
    overrideSchema: ({ valibotSchema, jsonSchema, errors }) => {
      // "Is an object", in front of the schema that says which.
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

/** Rules that JSON Schema has no word for. Where they matter to a client, the description tells them. */
const unwritten: ReadonlySet<string> = new Set(["check", "raw_check", "raw_transform", "max_bytes"]);

const isDigits = ({ type, pattern }: JsonSchema) => type === "string" && /^\^-\?\\d/.test(String(pattern));

/** Without what says nothing: that no field is required, that names of fields are texts. */
function tidy({ required = [], propertyNames, ...schema }: JsonSchema): JsonSchema {
  if (schema.type === "integer" && typeof schema.default === "string") schema.default = Number(schema.default);
  for (const [name, property] of Object.entries(schema.properties ?? {})) nameForm(name, property);
  const namesAreChecked = propertyNames !== undefined && Object.keys(propertyNames).some((word) => word !== "type");
  return { ...schema, ...(required.length > 0 && { required }), ...(namesAreChecked && { propertyNames }) };
}

/**
 * What a text is, by the name of its field: the names keep to one meaning. The models check the same in their own words, with
 * messages that JSON Schema has no place for.
 */
const forms: readonly [names: RegExp, form: JsonSchema][] = [
  [/(?:^at|At|_at|_used|_until|Timestamp)$/, { format: "date-time" }],
  [/^(?:from|to|startTime|endTime)$/, { pattern: isoTimeForm }],
  [/^email$/, { format: "email" }],
  [/^(?:url|payment_url|baseUrl)$/, { format: "uri" }],
  [/^webhook_url$/, { format: "uri", pattern: "^https?://", maxLength: 2048 }],
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
