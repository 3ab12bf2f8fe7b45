import type { DocumentDecoration } from "elysia";
import type { Access, ErasedEndpoint } from "../endpoint.ts";
import { jsonSchemaOf } from "./json-schema.ts";
import { parametersOf } from "./parameters.ts";
import { responsesOf } from "./responses.ts";

/** One endpoint's part of the document, or the instruction to hide it. */
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
  // Typed for 3.0, which the schemas of 3.1 do not fit.
  return operation as object;
}

/** The account API and the probes; neither pages nor the operator's interface. */
const isPublic = ({ tag }: ErasedEndpoint) => tag !== "Pages" && tag !== "Operator";

/** An empty list means that no credential is needed. */
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
