import { expect } from "bun:test";
import {
  findOperation,
  type OpenApiDocument,
  type Operation,
  problemsOf,
  type Schema,
} from "../../../support/openapi-check.ts";
import type { FuzzRequest, TokenKind } from "./requests.ts";

const refusedTokens: readonly TokenKind[] = ["none", "of another kind", "expired", "garbage"];

/**
 * What the document says of a request, held against the answer: without a token that is its own it is 401, whatever else
 * is wrong with it, and nothing succeeds that the document's schemas refuse.
 */
export function checkVerdict(
  document: OpenApiDocument,
  operation: Operation,
  request: FuzzRequest,
  route: { method: string; path: string; status: number },
): void {
  // Some of the texts in a path lead elsewhere.
  const isThere = findOperation(document, route.method, route.path) === operation;
  if (!isThere || route.status === 404 || route.status === 405) return;
  const isSecured = (operation.security ?? []).length > 0;
  if (isSecured && refusedTokens.includes(request.token)) expect(route.status).toBe(401);
  if (route.status >= 300) return;
  const problems = [...bodyProblems(document, operation, request), ...queryProblems(document, operation, request)];
  expect(problems).toEqual([]);
}

/** A request may have fields that nobody knows (rules, section 3); an answer may not. */
const problemsWith = (document: OpenApiDocument, schema: Schema, value: unknown, at: string) =>
  problemsOf(document, schema, value, at).filter((problem) => !problem.endsWith("is not in the document"));

function bodyProblems(document: OpenApiDocument, { requestBody }: Operation, { body }: FuzzRequest): string[] {
  const schema = requestBody?.content["application/json"]?.schema;
  if (schema === undefined) return [];
  if (body === undefined || body.length === 0) return requestBody?.required ? ["there is no body"] : [];
  const text = typeof body === "string" ? body : new TextDecoder("utf-8", { fatal: true }).decode(body);
  return problemsWith(document, schema, JSON.parse(text), "body");
}

function queryProblems(document: OpenApiDocument, { parameters = [] }: Operation, { path }: FuzzRequest): string[] {
  const query = new URLSearchParams(path.split("?").slice(1).join("?"));
  return parameters.flatMap(({ in: place, name, schema, required }) => {
    if (place !== "query") return [];
    // The last of equal names counts.
    const value = query.getAll(name).at(-1);
    if (value === undefined) return required ? [`${name} is missing`] : [];
    // 400 digits are an integer, too, although `Number` has no place for them.
    const typed =
      schema.type === "integer" && /^-?\d+$/.test(value) ? Math.min(Number(value), Number.MAX_VALUE) : value;
    return problemsWith(document, schema, schema.type === "boolean" ? value === "true" : typed, name);
  });
}
