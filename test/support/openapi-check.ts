/** Checks real responses against the published OpenAPI document, and values against its schemas. */

export interface OpenApiDocument {
  openapi: string;
  info: { title: string; version: string; description: string };
  servers: { url: string; description: string }[];
  tags: { name: string; description: string }[];
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, Schema>; securitySchemes: Record<string, unknown> };
}

export interface Operation {
  operationId?: string;
  summary?: string;
  tags?: string[];
  security?: Record<string, string[]>[];
  parameters?: { name: string; in: string; required: boolean; schema: Schema }[];
  requestBody?: { required: boolean; content: Record<string, MediaType> };
  responses?: Record<string, DocumentedResponse>;
}

export interface DocumentedResponse {
  description?: string;
  headers?: Record<string, { required?: boolean; schema: Schema }>;
  content?: Record<string, MediaType>;
}

export interface MediaType {
  schema?: Schema;
  example?: unknown;
}

export type Schema = Record<string, unknown>;

export interface RealAnswer {
  status: number;
  headers: Headers;
  bodyText: string;
}

/**
 * Throws when the document does not describe a real response: an operation or a status that it does not have, a different
 * content type, a missing header, a body that its schema rejects or that has a field it does not name.
 * @param path of the request (`/v1/events/evt_1?page=0`) or of the document (`/v1/events/{id}`)
 */
export function checkAnswer(document: OpenApiDocument, method: string, path: string, answer: RealAnswer): void {
  const response = describedResponse(document, method, path, answer);
  const where = `${method} ${path} → ${answer.status}`;
  for (const [name, { required, schema }] of Object.entries(response.headers ?? {})) {
    const value = answer.headers.get(name);
    if (value === null) {
      if (required) throw new Error(`${where}: the header ${name} is missing.`);
      continue;
    }
    const typed = schema.type === "integer" && /^-?\d+$/.test(value) ? Number(value) : value;
    refuseProblems(`${where}, header ${name}`, problemsOf(document, schema, typed));
  }
  checkBody(document, where, response, answer);
}

function checkBody(document: OpenApiDocument, where: string, { content }: DocumentedResponse, answer: RealAnswer) {
  if (content === undefined) {
    if (answer.bodyText !== "") throw new Error(`${where}: the document has no body, but there is one.`);
    return;
  }
  const type = (answer.headers.get("content-type") ?? "").split(";")[0]?.trim() ?? "";
  const media = content[type];
  if (!media) throw new Error(`${where}: the content type is "${type}", not ${Object.keys(content).join(" or ")}.`);
  if (type !== "application/json" || media.schema === undefined) return;
  let value: unknown;
  try {
    value = JSON.parse(answer.bodyText);
  } catch {
    throw new Error(`${where}: the body is no JSON: ${answer.bodyText.slice(0, 200)}`);
  }
  refuseProblems(where, problemsOf(document, media.schema, value), answer.bodyText);
}

function refuseProblems(where: string, problems: string[], text = ""): void {
  if (problems.length > 0)
    throw new Error(`${where} is not as documented:\n${problems.join("\n")}\n${text.slice(0, 500)}`);
}

/** Responses that `info.description` describes for all paths: an unknown path, a wrong method, an outside caller. */
const general: Readonly<Record<number, string>> = { 404: "unknown_path", 405: "method_not_allowed", 403: "local_mode" };

function describedResponse(document: OpenApiDocument, method: string, path: string, answer: RealAnswer) {
  const operation = findOperation(document, method, path);
  const isGeneral = general[answer.status] !== undefined && codeOf(answer.bodyText) === general[answer.status];
  if (isGeneral) return { content: { "application/json": { schema: { $ref: "#/components/schemas/Error" } } } };
  if (!operation) throw new Error(`${method} ${path} is not in the document.`);
  const response = operation.responses?.[answer.status];
  if (!response) {
    const known = Object.keys(operation.responses ?? {}).join(", ");
    throw new Error(
      `${method} ${path}: ${answer.status} is not in the document, which has ${known}.\n${answer.bodyText}`,
    );
  }
  return response;
}

function codeOf(bodyText: string): unknown {
  try {
    return JSON.parse(bodyText).code;
  } catch {
    return undefined;
  }
}

/** Of the templates that match, the one with the fewest parameters: `/v1/tenants/me` before `/v1/tenants/{id}`. */
export function findOperation(document: OpenApiDocument, method: string, path: string): Operation | undefined {
  const parts = (path.split(/[?#]/)[0] ?? "").split("/");
  const fitting = Object.keys(document.paths)
    .map((template) => ({ template, words: template.split("/") }))
    .filter(({ words }) => words.length === parts.length && words.every((word, i) => word === parts[i] || isName(word)))
    .sort((a, b) => countOf(a.words, parts) - countOf(b.words, parts));
  for (const { template } of fitting) {
    const operation = document.paths[template]?.[method.toLowerCase()];
    if (operation) return operation;
  }
  return undefined;
}

const isName = (word: string) => word.startsWith("{") && word.endsWith("}");
const countOf = (words: string[], parts: string[]) => words.filter((word, i) => word !== parts[i]).length;

// ---------------------------------------------------------------- schemas

/** Keywords that describe a value but never reject one. */
const annotations = new Set(["title", "description", "default", "example", "examples", "deprecated", "format"]);

type Keyword = (value: unknown, rule: never, schema: Schema, context: Context) => string[];

interface Context {
  document: OpenApiDocument;
  at: string;
}

/**
 * What is wrong with a value according to a schema of the document, in draft 2020-12 as far as the document uses it; an
 * unknown keyword throws, so that none goes unchecked. Stricter in one point: a field that `properties` does not name is
 * rejected unless `additionalProperties` allows it, because a response must not say more than the document.
 */
export function problemsOf(document: OpenApiDocument, schema: Schema, value: unknown, at = "body"): string[] {
  return Object.entries(schema).flatMap(([name, rule]) => {
    if (annotations.has(name) || name.startsWith("x-")) return [];
    const keyword = keywords[name];
    if (!keyword) throw new Error(`${at}: the schema keyword "${name}" is not known to openapi-check.ts.`);
    return keyword(value, rule as never, schema, { document, at });
  });
}

const fail = (holds: boolean, at: string, says: string): string[] => (holds ? [] : [`${at} ${says}`]);
const show = (value: unknown) => JSON.stringify(value)?.slice(0, 80) ?? "undefined";
const same = (a: unknown, b: unknown) => JSON.stringify(a) === JSON.stringify(b);
const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const has = (object: object, name: string) => Object.hasOwn(object, name);

const types: Readonly<Record<string, (value: unknown) => boolean>> = {
  string: (value) => typeof value === "string",
  number: (value) => typeof value === "number",
  integer: (value) => Number.isInteger(value),
  boolean: (value) => typeof value === "boolean",
  null: (value) => value === null,
  array: Array.isArray,
  object: isObject,
};

/** A keyword about values of one type; it accepts all others. */
const about =
  <T, Rule>(isType: (value: unknown) => value is T, holds: (value: T, rule: Rule) => boolean, says: string) =>
  (value: unknown, rule: Rule, _schema: Schema, { at }: Context) =>
    fail(!isType(value) || holds(value, rule), at, `${says} ${show(rule)}: ${show(value)}`);

const isText = (value: unknown): value is string => typeof value === "string";
const isNumber = (value: unknown): value is number => typeof value === "number";
const isList = (value: unknown): value is unknown[] => Array.isArray(value);
/** Characters, not UTF-16 units. */
const lengthOf = (value: string) => [...value].length;

const fits = ({ document, at }: Context, schema: Schema, value: unknown) => problemsOf(document, schema, value, at);

/** What a `$ref` of the document stands for. */
export function sharedSchema(document: OpenApiDocument, ref: string): Schema {
  const name = /^#\/components\/schemas\/([^/]+)$/.exec(ref)?.[1];
  const target = name === undefined ? undefined : document.components.schemas[name];
  if (!target) throw new Error(`${ref} leads nowhere.`);
  return target;
}

const keywords: Readonly<Record<string, Keyword>> = {
  $ref: (value, ref: string, _schema, context) => fits(context, sharedSchema(context.document, ref), value),
  type(value, type: string | string[], _schema, { at }) {
    return fail(
      [type].flat().some((name) => types[name]?.(value)),
      at,
      `must be of type ${[type].flat().join(" or ")}: ${show(value)}`,
    );
  },
  enum: (value, options: unknown[], _schema, { at }) =>
    fail(
      options.some((option) => same(option, value)),
      at,
      `must be one of ${show(options)}: ${show(value)}`,
    ),
  const: (value, only: unknown, _schema, { at }) =>
    fail(same(only, value), at, `must be ${show(only)}: ${show(value)}`),
  anyOf(value, options: Schema[], _schema, context) {
    const tries = options.map((option) => fits(context, option, value));
    return tries.some((problems) => problems.length === 0) ? [] : tries.flat();
  },
  oneOf(value, options: Schema[], _schema, context) {
    const fitting = options.filter((option) => fits(context, option, value).length === 0);
    return fail(fitting.length === 1, context.at, `must fit one of ${options.length} schemas, fits ${fitting.length}`);
  },
  allOf: (value, all: Schema[], _schema, context) => all.flatMap((schema) => fits(context, schema, value)),
  not: (value, schema: Schema, _schema, context) =>
    fail(fits(context, schema, value).length > 0, context.at, `must not fit ${show(schema)}`),

  required: (value, names: string[], _schema, { at }) =>
    isObject(value) ? names.filter((name) => !has(value, name)).map((name) => `${at}.${name} is missing`) : [],
  properties(value, properties: Record<string, Schema>, schema, { document, at }) {
    if (!isObject(value)) return [];
    return Object.entries(value).flatMap(([name, field]) => {
      const own = has(properties, name) ? properties[name] : undefined;
      if (own) return problemsOf(document, own, field, `${at}.${name}`);
      return fail("additionalProperties" in schema, `${at}.${name}`, "is not in the document");
    });
  },
  additionalProperties(value, rule: Schema | boolean, { properties = {} }, { document, at }) {
    if (!isObject(value) || rule === true) return [];
    return Object.entries(value)
      .filter(([name]) => !has(properties as object, name))
      .flatMap(([name, field]) =>
        rule === false ? [`${at}.${name} is not allowed`] : problemsOf(document, rule, field, `${at}.${name}`),
      );
  },
  propertyNames: (value, schema: Schema, _schema, { document, at }) =>
    isObject(value) ? Object.keys(value).flatMap((name) => problemsOf(document, schema, name, `${at}, name`)) : [],
  minProperties: about(
    isObject,
    (value, min: number) => Object.keys(value).length >= min,
    "must have fields, at least",
  ),
  maxProperties: about(isObject, (value, max: number) => Object.keys(value).length <= max, "must have fields, at most"),

  items(value, rule: Schema | boolean, { prefixItems = [] }, { document, at }) {
    if (!isList(value)) return [];
    const first = (prefixItems as Schema[]).length;
    return value
      .slice(first)
      .flatMap((item, i) =>
        typeof rule === "boolean"
          ? fail(rule, `${at}[${first + i}]`, "is too many")
          : problemsOf(document, rule, item, `${at}[${first + i}]`),
      );
  },
  prefixItems: (value, schemas: Schema[], _schema, { document, at }) =>
    isList(value) ? value.flatMap((item, i) => problemsOf(document, schemas[i] ?? {}, item, `${at}[${i}]`)) : [],
  minItems: about(isList, (value, min: number) => value.length >= min, "must have items, at least"),
  maxItems: about(isList, (value, max: number) => value.length <= max, "must have items, at most"),

  minLength: about(isText, (value, min: number) => lengthOf(value) >= min, "must have characters, at least"),
  maxLength: about(isText, (value, max: number) => lengthOf(value) <= max, "must have characters, at most"),
  pattern: about(isText, (value, source: string) => new RegExp(source, "u").test(value), "must match"),
  minimum: about(isNumber, (value, min: number) => value >= min, "must be at least"),
  maximum: about(isNumber, (value, max: number) => value <= max, "must be at most"),
  exclusiveMinimum: about(isNumber, (value, min: number) => value > min, "must be more than"),
  exclusiveMaximum: about(isNumber, (value, max: number) => value < max, "must be less than"),
  multipleOf: about(isNumber, (value, unit: number) => Number.isInteger(value / unit), "must be a multiple of"),
};
