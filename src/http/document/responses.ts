import { type ErasedEndpoint, type ResponseDescription, smallBodyBytes } from "../endpoint.ts";
import { jsonSchemaOf } from "./json-schema.ts";
import { parametersIn } from "./parameters.ts";

const errorSchema = { $ref: "#/components/schemas/Error" };

export interface DocumentedResponse {
  description: string;
  headers?: Record<string, object>;
  content?: Record<string, object>;
}

/** The responses that the endpoint declares, and those that follow from what it takes and who may call it. */
export function responsesOf(endpoint: ErasedEndpoint): Record<string, DocumentedResponse> {
  const all: Record<string, DocumentedResponse> = {};
  for (const status of commonStatuses(endpoint)) all[status] = documented(status, commonOf(status, endpoint));
  for (const [key, own] of Object.entries(endpoint.responses)) {
    const status = Number(key);
    // Any endpoint may find the server stopping or short of disk, whatever else its 503 may mean.
    const description = status === 503 ? `${own.description} Or: ${common[503].description}` : own.description;
    all[status] = documented(status, { ...own, description });
  }
  return all;
}

function commonStatuses(endpoint: ErasedEndpoint): CommonStatus[] {
  const { access, body } = endpoint;
  return [
    ...(isChecked(endpoint) ? ([400] as const) : []),
    ...(access === "none" ? [] : ([401] as const)),
    ...(body === undefined ? [] : ([413, 415] as const)),
    500,
    503,
  ];
}

/** Whether any part of the request can break a rule; a path parameter that may be any string cannot. */
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

/** Sent when a single field is to blame. */
const fieldHeaders = {
  "Error-Field": "The field at fault, as the message names it. Absent unless a single field is at fault.",
  "Error-Rule": "The rule that the field breaks, in the words of the message. Sent with `Error-Field`.",
};

/** What `errorResponse` sends with a status, for any endpoint. */
const errorHeaders: Readonly<Record<number, Readonly<Record<string, string>>>> = {
  400: fieldHeaders,
  401: { "WWW-Authenticate": "Always `Bearer`." },
  429: retryAfter,
  503: retryAfter,
};

type CommonStatus = 400 | 401 | 413 | 415 | 500 | 503;

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
