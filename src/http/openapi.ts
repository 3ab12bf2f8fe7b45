import { openapi } from "@elysiajs/openapi";
import { toJsonSchema } from "@valibot/to-json-schema";
import { type DocumentDecoration, Elysia } from "elysia";
import { isoTimeForm } from "../lib/iso-time.ts";
import { version } from "../version.ts";
import { documentPath } from "./document-path.ts";
import { type Access, type ErasedEndpoint, type ResponseDescription, type Schema, smallBodyBytes } from "./endpoint.ts";

/** What the document says beside its operations. A tag that an endpoint has and this list has not fails a test. */
const documentation = {
  info: {
    title: "Postrider",
    version,
    license: { name: "MIT", identifier: "MIT" },
    description: [
      "A multi-tenant event relay with stored history: it accepts events, stores them and delivers each one to every registered webhook, signed and with retries.",
      "Every error body is `{message, code}`: a sentence for people and a stable code for programs. Times are ISO 8601 in UTC with milliseconds. New values of `state` and `status` and new response fields may be added; ignore those you do not know.",
      "An unknown path returns 404 with the code `unknown_path`; a method that the path does not support returns 405 with `Allow`. A server in local mode returns 403 with the code `local_mode` for every request that does not come from its own machine.",
      "An invalid `Host` returns 400 with the code `invalid_host`; `CONNECT` and a raw backslash or `#` in the request target return 400 with the code `invalid_target`. A request other than GET, HEAD or OPTIONS that a browser sends from another origin (`Origin`, `Sec-Fetch-Site`) returns 403 with the code `cross_site`.",
      'When a single field causes a 400, `Error-Field` names it as the message does (`webhooks[2].webhook_url`) and `Error-Rule` has the rule that follows (`must start with "https://"`), so that a form can show the rule under its own label.',
      "Every response of an endpoint carries `Request-Id`, which identifies the request in the operator's log; quote it when you report a problem. A client's own `X-Request-Id` is logged with it but not sent back.",
    ].join("\n\n"),
  },
  tags: [
    { name: "Accounts", description: "Create, read, upgrade and delete a tenant." },
    { name: "Billing", description: "The card, usage this month and every charge." },
    { name: "Sessions", description: "Session tokens (JWT) for all management calls, and the account's password." },
    { name: "API keys", description: "The key that authorises ingestion." },
    { name: "Ingestion", description: "Where events come in. A 202 means that they are on disk." },
    { name: "Webhooks", description: "The https URLs to which events are delivered." },
    {
      name: "Inbox",
      description: "A built-in receiver for every account, to see deliveries without running one of your own.",
    },
    { name: "Events", description: "Stored events, their deliveries, attempts and statistics." },
    { name: "Replays", description: "Deliver stored events again, in the background." },
    { name: "Signatures", description: "What a receiver needs to prove that a delivery is genuine." },
    { name: "Stream", description: "The account's activity, in real time." },
    { name: "Operation", description: "Probes for orchestrators and monitoring." },
  ],
  components: {
    securitySchemes: {
      session: { type: "http", scheme: "bearer", bearerFormat: "JWT", description: "A session token from the login." },
      apiKey: { type: "http", scheme: "bearer", bearerFormat: "svc_sk_…", description: "The API key of the account." },
    },
    schemas: {
      Error: {
        type: "object",
        properties: {
          message: { type: "string", description: "A sentence that names the field, the rule and the remedy." },
          code: { type: "string", pattern: "^[a-z][a-z0-9_]*$", description: "A stable code to branch on." },
        },
        required: ["message", "code"],
      },
    },
  },
};

const errorSchema = { $ref: "#/components/schemas/Error" };

// ---------------------------------------------------------------- the document

/**
 * The document as JSON, which @elysiajs/openapi makes of the `detail` of every route: here of a copy of the interface that
 * answers nothing else, because describing all routes is a tenth of a start, and few servers are ever asked. One thing is
 * put right: the plugin replaces the parameters of a path by bare strings and drops the query beside them, unless Elysia
 * itself checks them (it does not: `respond.ts` does).
 */
export async function writeDocument(endpoints: readonly ErasedEndpoint[], publicUrl: string): Promise<string> {
  const copy = new Elysia({ normalize: false });
  copy.use(
    openapi({
      provider: null,
      specPath: documentPath,
      openapiVersion: "3.1.0",
      // Otherwise every path with a dot counts as a file, `jwks.json` too.
      exclude: { staticFile: false },
      // Typed for 3.0, where the schemas of 3.1 do not fit.
      documentation: documentation as object,
    }),
  );
  for (const endpoint of endpoints) {
    copy.route(endpoint.method, endpoint.path, () => null, {
      config: {},
      parse: "none",
      detail: describeEndpoint(endpoint),
    });
  }
  const answer = await copy.handle(new Request(`http://localhost${documentPath}`));
  const document = withParameters((await answer.json()) as OpenApiDocument, endpoints);
  return JSON.stringify({ ...document, servers: serversOf(publicUrl) });
}

/** The page at `/docs` takes the first: it may call none but the address under which it was opened. */
const serversOf = (publicUrl: string) => [
  { url: "/", description: "The server that serves this document." },
  { url: publicUrl, description: "The public address of the server." },
];

interface OpenApiDocument {
  paths: Record<string, Record<string, Record<string, unknown>>>;
}

function withParameters(document: OpenApiDocument, endpoints: readonly ErasedEndpoint[]): OpenApiDocument {
  for (const endpoint of endpoints) {
    const operation = document.paths[templateOf(endpoint.path)]?.[endpoint.method.toLowerCase()];
    if (operation) operation.parameters = parametersOf(endpoint);
  }
  return document;
}

/** `/v1/events/:id` → `/v1/events/{id}` */
const templateOf = (path: string) => path.replace(/:([^/]+)/g, "{$1}");

// ---------------------------------------------------------------- one operation

/** The part of the document that one endpoint is, or the order to hide it. */
export function describeEndpoint(endpoint: ErasedEndpoint): DocumentDecoration {
  if (!isPublic(endpoint)) return { hide: true };
  const { summary, description, tag, access } = endpoint;
  const requestBody = requestBodyOf(endpoint);
  const operation = {
    operationId: operationIdOf(endpoint),
    summary,
    ...(description !== undefined && { description }),
    tags: [tag],
    security: security[access],
    parameters: parametersOf(endpoint),
    ...(requestBody && { requestBody }),
    responses: responsesOf(endpoint),
  };
  // Typed for 3.0, where the schemas of 3.1 do not fit.
  return operation as object;
}

/** The interface under /v1 and the two probes. Pages, metrics and the operator's calls are no part of it. */
const isPublic = ({ path, access }: ErasedEndpoint) =>
  access !== "operator" && (path.startsWith("/v1/") || path === "/healthz" || path === "/readyz");

/** An empty list says that no credential is needed. */
const security: Record<Access, Record<string, never[]>[]> = {
  none: [],
  session: [{ session: [] }],
  api_key: [{ apiKey: [] }],
  operator: [],
  metrics: [],
};

/** `GET /v1/events/:id/attempts` → `getEventsByIdAttempts`. */
function operationIdOf({ method, path }: ErasedEndpoint): string {
  const words = path
    .replace(/^\/v1\//, "/")
    .replace(/:(\w)/g, "by-$1")
    .split(/\W+/)
    .filter((word) => word !== "");
  return method.toLowerCase() + words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join("");
}

function requestBodyOf({ body, bodyDocument, bodyExample, bodyOptional }: ErasedEndpoint) {
  const schema = typeof body === "string" ? bodyDocument : body;
  if (schema === undefined) return undefined;
  const media = { schema: jsonSchemaOf(schema), ...(bodyExample !== undefined && { example: bodyExample }) };
  const type = body === "form" ? "application/x-www-form-urlencoded" : "application/json";
  return { required: !bodyOptional, content: { [type]: media } };
}

// ---------------------------------------------------------------- parameters

interface Parameter {
  name: string;
  in: "path" | "query" | "header";
  required: boolean;
  description?: string;
  schema: JsonSchema;
}

function parametersOf(endpoint: ErasedEndpoint): Parameter[] {
  return [
    ...parametersIn("path", endpoint.params),
    ...parametersIn("query", endpoint.query),
    ...(endpoint.access === "api_key" && endpoint.method === "POST" ? [idempotencyKey] : []),
    ...(isStream(endpoint) ? [lastEventId] : []),
  ];
}

function parametersIn(place: "path" | "query", schema: Schema | undefined): Parameter[] {
  const { properties = {}, required = [] } = schema === undefined ? {} : jsonSchemaOf(schema);
  return Object.entries(properties).map(([name, { description, ...rest }]) => ({
    name,
    in: place,
    required: place === "path" || required.includes(name),
    ...(description !== undefined && { description }),
    schema: rest,
  }));
}

/** Of every ingestion (rules, section 6). */
const idempotencyKey: Parameter = {
  name: "Idempotency-Key",
  in: "header",
  required: false,
  description:
    "Makes retries safe for 24 hours: the same path and bytes with the same key return the same 202, different bytes 422.",
  schema: { type: "string", minLength: 1, maxLength: 255, pattern: "^[\\x20-\\x7e]*$" },
};

/** Of an event stream (HTML standard, "The Last-Event-ID header"). */
const lastEventId: Parameter = {
  name: "Last-Event-ID",
  in: "header",
  required: false,
  description: "The id of the last message received; the stream resumes after it.",
  schema: { type: "string" },
};

const isStream = ({ responses }: ErasedEndpoint) => responses[200]?.contentType === "text/event-stream";

// ---------------------------------------------------------------- responses

interface DocumentedResponse {
  description: string;
  headers?: Record<string, object>;
  content?: Record<string, object>;
}

/** The answers that the endpoint names, and those that follow from what it takes and who may call it. */
function responsesOf(endpoint: ErasedEndpoint): Record<string, DocumentedResponse> {
  const all: Record<string, DocumentedResponse> = {};
  for (const status of commonStatuses(endpoint)) all[status] = documented(status, commonOf(status, endpoint));
  for (const [key, own] of Object.entries(endpoint.responses)) {
    const status = Number(key);
    // The server can be stopping or short of disk at every endpoint, whatever else its 503 may mean.
    const description = status === 503 ? `${own.description} Or: ${common[503].description}` : own.description;
    all[status] = documented(status, { ...own, description });
  }
  return all;
}

function commonStatuses(endpoint: ErasedEndpoint): CommonStatus[] {
  const { access, body, limit } = endpoint;
  return [
    ...(isChecked(endpoint) ? ([400] as const) : []),
    ...(access === "none" ? [] : ([401] as const)),
    ...(body === undefined ? [] : ([413, 415] as const)),
    ...(limit === undefined ? [] : ([429] as const)),
    500,
    503,
  ];
}

/** Whether something of the request can break a rule; a path parameter that may be any string cannot. */
const isChecked = ({ body, query, params }: ErasedEndpoint) =>
  body !== undefined ||
  query !== undefined ||
  parametersIn("path", params).some(({ schema }) => Object.keys(schema).some((keyword) => keyword !== "type"));

function documented(status: number, { description, schema, example, contentType, headers }: ResponseDescription) {
  const isError = status >= 400;
  const type = contentType ?? (isError || schema !== undefined ? "application/json" : undefined);
  const body = isError ? errorSchema : schema === undefined ? { type: "string" } : jsonSchemaOf(schema);
  const allHeaders = { ...errorHeaders[status], ...headers };
  return {
    description,
    ...(Object.keys(allHeaders).length > 0 && {
      headers: Object.fromEntries(Object.entries(allHeaders).map(([name, text]) => [name, headerOf(name, text)])),
    }),
    ...(type !== undefined && { content: { [type]: { schema: body, ...(example !== undefined && { example }) } } }),
  };
}

const headerOf = (name: string, description: string) => ({
  description,
  required: !(name in fieldHeaders),
  schema: name === "Retry-After" ? { type: "integer", minimum: 0 } : { type: "string" },
});

const retryAfter = { "Retry-After": "Seconds to wait before retrying." };

/** Sent when one field is to blame. */
const fieldHeaders = {
  "Error-Field": "The field that is to blame, as the message names it. Absent when no field alone is.",
  "Error-Rule": "The rule that it breaks, as the message goes on after the field. Sent with `Error-Field`.",
};

/** What `errorResponse` sends with a status, whatever the endpoint. */
const errorHeaders: Readonly<Record<number, Readonly<Record<string, string>>>> = {
  400: fieldHeaders,
  401: { "WWW-Authenticate": "Always `Bearer`." },
  429: retryAfter,
  503: retryAfter,
};

type CommonStatus = 400 | 401 | 413 | 415 | 429 | 500 | 503;

const failed = (description: string, code: string, message: string) => ({ description, example: { message, code } });

function commonOf(status: CommonStatus, { maxBodyBytes = smallBodyBytes }: ErasedEndpoint): ResponseDescription {
  if (status !== 413) return common[status];
  return failed(
    `The body exceeds ${maxBodyBytes} bytes.`,
    "body_too_large",
    `The body must be at most ${maxBodyBytes} bytes.`,
  );
}

const common: Readonly<Record<Exclude<CommonStatus, 413>, ResponseDescription>> = {
  400: failed(
    "The request is invalid; `message` names the field and the rule.",
    "invalid_request",
    "name must be a string.",
  ),
  401: failed(
    "The credential is missing, invalid or expired.",
    "unauthenticated",
    "Authorization must be `Bearer <token>` with a valid token.",
  ),
  415: failed(
    "The Content-Type is not JSON, or the body has a Content-Encoding.",
    "unsupported_media_type",
    "Content-Type must be application/json.",
  ),
  429: failed(
    "Too many requests.",
    "rate_limited",
    "Too many requests; retry after the number of seconds in Retry-After.",
  ),
  500: failed(
    "The server failed; the operator's log says why.",
    "internal_error",
    "The server failed to handle this request; the operator's log says why.",
  ),
  503: failed(
    "The server cannot handle the request now. It had no effect and is safe to retry.",
    "shutting_down",
    "The server is shutting down; retry the request.",
  ),
};

// ---------------------------------------------------------------- schemas

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
