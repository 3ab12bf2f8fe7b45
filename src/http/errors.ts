import { type BrokenRule, DomainError, type ErrorKind } from "../domain/errors.ts";

/** The only place where a kind of error becomes a status (specification, "Errors"; rules, section 3). */
const statusOf: Record<ErrorKind, number> = {
  invalid: 400,
  unauthenticated: 401,
  payment_required: 402,
  forbidden: 403,
  not_found: 404,
  method_not_allowed: 405,
  precondition_failed: 412,
  too_large: 413,
  unsupported_media_type: 415,
  idempotency_conflict: 422,
  rate_limited: 429,
  unavailable: 503,
};

/**
 * The response to a request that failed. Anything but a DomainError is a defect, of which the client learns nothing but the
 * id under which the log has it.
 */
export function errorResponse(error: unknown, requestId?: string): Response {
  const headers: Record<string, string> = requestId === undefined ? {} : { "Request-Id": requestId };
  if (!(error instanceof DomainError)) {
    const under = requestId === undefined ? "" : ` under ${requestId}`;
    return json(
      500,
      "internal_error",
      `The server failed to handle this request; the operator's log says why${under}.`,
      headers,
    );
  }
  if (error.retryAfterSeconds !== undefined) headers["Retry-After"] = String(error.retryAfterSeconds);
  if (error.kind === "unauthenticated") headers["WWW-Authenticate"] = "Bearer";
  if (error.broken) nameField(error.broken, headers);
  if (error.allow) headers.Allow = error.allow.join(", ");
  return json(statusOf[error.kind], error.code, error.message, headers);
}

/** Lets a form show the rule next to the field, under its own label, without parsing the sentence. */
function nameField({ field, rule }: BrokenRule, headers: Record<string, string>): void {
  if (!isHeaderText.test(field) || !isHeaderText.test(rule)) return;
  headers["Error-Field"] = field;
  headers["Error-Rule"] = rule;
}

/** Printable ASCII, of a length that every client accepts. A rule may quote what the client sent. */
const isHeaderText = /^[\x20-\x7e]{1,1000}$/;

function json(status: number, code: string, message: string, headers: Record<string, string>): Response {
  return Response.json({ message, code }, { status, headers: { ...securityHeaders, ...headers } });
}

/** Sent with every API response. None of them is a page, and no cache may keep any of them. */
export const securityHeaders: Readonly<Record<string, string>> = {
  "Cache-Control": "no-store",
  "X-Content-Type-Options": "nosniff",
};
