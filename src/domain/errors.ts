/**
 * What can go wrong for a client, in the words of the domain. `http/errors.ts` is the one place that turns a kind into a
 * status; nothing here knows HTTP.
 */
export type ErrorKind =
  | "invalid" // the request breaks a rule of the interface
  | "unauthenticated" // no valid credential
  | "payment_required" // the account's payment state forbids it
  | "forbidden" // authenticated, but not allowed for this resource
  | "not_found"
  | "method_not_allowed"
  | "too_large"
  | "unsupported_media_type"
  | "precondition_failed" // the resource is not as the client says that it read it
  | "idempotency_conflict"
  | "rate_limited"
  | "unavailable"; // temporary, without effect: repeating is safe

/** What `message` says, in its two parts: "webhooks[2].webhook_url" and "must …". */
export interface BrokenRule {
  /** Its name in the interface; empty: the body as a whole. */
  field: string;
  rule: string;
}

export interface ErrorDetails {
  kind: ErrorKind;
  /** snake_case word that programs branch on; stable. */
  code: string;
  /** One sentence that names the field, the rule and, where there is one, the remedy. */
  message: string;
  /** For `invalid`, where one field is to blame, or the body as a whole. */
  broken?: BrokenRule;
  /** For `rate_limited` and `unavailable`: when a repetition may succeed, in seconds. */
  retryAfterSeconds?: number;
  /** For `method_not_allowed`: the methods that the path has. */
  allow?: string[];
  /** What it comes from, for the operator; no client sees it. */
  cause?: unknown;
}

/** A refusal. It carries no secret and no payload, because its message reaches the client unchanged. */
export class DomainError extends Error {
  readonly kind: ErrorKind;
  readonly code: string;
  readonly broken: BrokenRule | undefined;
  readonly retryAfterSeconds: number | undefined;
  readonly allow: string[] | undefined;

  constructor(details: ErrorDetails) {
    super(details.message, details.cause === undefined ? undefined : { cause: details.cause });
    this.name = "DomainError";
    this.kind = details.kind;
    this.code = details.code;
    this.broken = details.broken;
    this.retryAfterSeconds = details.retryAfterSeconds;
    this.allow = details.allow;
  }
}

/** A request that breaks a rule of the interface, where neither its body nor a single field is to blame. */
export const invalid = (message: string, code = "invalid_request") =>
  new DomainError({ kind: "invalid", code, message });

/**
 * A field that breaks a rule, which is the end of the sentence that the field begins: "must not be empty".
 * @param field empty: the body as a whole
 */
export const invalidField = (field: string, rule: string, code = "invalid_request") =>
  new DomainError({ kind: "invalid", code, message: `${field || "The body"} ${rule}.`, broken: { field, rule } });

/** Like `invalidField`, for the body as a whole. */
export const invalidBody = (rule: string, code: string) => invalidField("", rule, code);

/** A resource that this account does not have. */
export const notFound = (message: string, code: string) => new DomainError({ kind: "not_found", code, message });

/** A temporary failure that had no effect (rules, section 3: 503 only when a repetition is safe). */
export const unavailable = (message: string, code: string, retryAfterSeconds = 1, cause?: unknown) =>
  new DomainError({ kind: "unavailable", code, message, retryAfterSeconds, cause });

export const isUnavailable = (error: unknown): error is DomainError =>
  error instanceof DomainError && error.kind === "unavailable";

/** The server is shutting down, and another will answer soon. */
export const shuttingDown = (retryAfterSeconds = 1) =>
  unavailable("The server is shutting down; retry the request.", "shutting_down", retryAfterSeconds);

/** The client is gone, or what it sent after its request closed the connection: nobody reads this. */
export const requestAbandoned = () =>
  invalid("The connection closed before the request was handled.", "request_abandoned");

/** A limit that passes with time. */
export const rateLimited = (message: string, code: string, retryAfterSeconds: number) =>
  new DomainError({
    kind: "rate_limited",
    code,
    message,
    retryAfterSeconds: Math.max(1, Math.ceil(retryAfterSeconds)),
  });

/** Stops the start or a command; the message is for the operator and ends with what to do. */
export class StartupError extends Error {
  override readonly name: string = "StartupError";
}

/**
 * A mistake on the command line, whoever finds it: the parser, a setting that was given as a flag, or the server. The message
 * is one line that ends with a valid form.
 */
export class UsageError extends StartupError {
  override readonly name = "UsageError";
}
