import * as v from "valibot";
import type { ResponseDescription } from "./endpoint.ts";

/** The body of every error response (specification, "Errors"). */
const errorBody = v.object({ message: v.string(), code: v.string() });

/** An error specific to one endpoint, with an example. */
export const failure = (description: string, code: string, message: string): ResponseDescription => ({
  description,
  schema: errorBody,
  example: { message, code },
});

export const invalidRequest = (message: string, code = "invalid_request") =>
  failure("The request is invalid; `message` names the field and the rule.", code, message);
