import * as v from "valibot";
import type { DomainError } from "../domain/errors.ts";
import type { ResponseDescription } from "./endpoint.ts";

/** The body of every error response (specification, "Errors"). */
const errorBody = v.object({ message: v.string(), code: v.string() });

/** An error specific to one endpoint, with an example. Where one refusal is the example, use `refusal`. */
export const failure = (description: string, code: string, message: string): ResponseDescription => ({
  description,
  schema: errorBody,
  example: { message, code },
});

/** Like `failure`, with the refusal itself as the example, so the document says what the server says. */
export const refusal = (description: string, { code, message }: DomainError): ResponseDescription =>
  failure(description, code, message);

/** The answer to a request that breaks a rule; `message` is an example. */
export const invalidRequest = (message: string, code = "invalid_request") =>
  failure("The request is invalid; `message` names the field and the rule.", code, message);
