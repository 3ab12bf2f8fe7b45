import { DomainError } from "../domain/errors.ts";
import type { Tenant } from "../domain/tenant.ts";
import { isSameSecret } from "../lib/same-secret.ts";
import { isSafe } from "./cross-site-guard.ts";
import type { Access } from "./endpoint.ts";
import { notAuthenticated, type SessionClaims, type Sessions } from "./session.ts";

/** Who sent a request, as its credential proves. */
export interface Identity {
  readonly tenant?: Tenant;
  readonly session?: SessionClaims;
  readonly apiKeyId?: string;
}

export interface AuthDeps {
  sessions: Pick<Sessions, "check">;
  /** Answers synchronously when the key is known. @throws unauthenticated */
  authenticateApiKey(key: string): Identity | Promise<Identity>;
  /** Read on each use, because it can be rotated. */
  operatorToken(): string;
  /** Whether the headers come from a browser in which the operator has signed in. */
  isOperatorsBrowser(headers: Headers): boolean;
  /** Grants access to the metrics and nothing else; null when none is set. */
  metricsToken: string | null;
  /** Called for every wrong operator or metrics token, with the address it came from. */
  onWrongToken(access: Access, address: string): void;
}

const nobody: Identity = {};

/**
 * Checks the credential that an endpoint asks for (specification, "Authentication"). A known one is answered synchronously: a
 * promise per event cost time, and work for the garbage collector.
 */
export function createAuthenticate({
  sessions,
  authenticateApiKey,
  operatorToken,
  isOperatorsBrowser,
  metricsToken,
  onWrongToken,
}: AuthDeps) {
  return function authenticate(
    access: Access,
    { method, headers }: Pick<Request, "method" | "headers">,
    address = "",
  ): Identity | Promise<Identity> {
    if (access === "none") return nobody;
    const token = bearerToken(headers);
    if (access === "operator" || access === "metrics") {
      if (token !== null && isToken(access, token)) return nobody;
      if (token === null && access === "operator" && mayComeFromPage(method, headers) && isOperatorsBrowser(headers))
        return nobody;
      // A missing token is not a guess: this may be a browser or a probe.
      if (token !== null) onWrongToken(access, address);
      throw access === "operator" ? notOperator() : notScraper();
    }
    if (access === "api_key") return authenticateApiKey(token ?? "");
    if (token === null) throw notAuthenticated();
    return sessions.check(token).then(({ tenant, claims }) => ({ tenant, session: claims }));
  };

  /** Always compares both, so that the timing reveals nothing. */
  function isToken(access: Access, given: string): boolean {
    const isOperators = isSameSecret(given, operatorToken());
    const isScrapers = metricsToken !== null && isSameSecret(given, metricsToken);
    return isOperators || (isScrapers && access === "metrics");
  }
}

/** RFC 6750, section 2.1; the scheme is case-insensitive (RFC 9110, section 11.1). */
function bearerToken(headers: Headers): string | null {
  const header = headers.get("authorization");
  if (header === null || header.length < 8 || header.slice(0, 7).toLowerCase() !== "bearer ") return null;
  return header.slice(7).trim();
}

/**
 * A cookie is sent by the browser, whoever made it send the request. So a request that changes anything must name the page it
 * comes from; foreign origins have been refused before this point (`createCrossSiteGuard`).
 */
const mayComeFromPage = (method: string, headers: Headers) => isSafe(method) || headers.has("origin");

const notScraper = () =>
  new DomainError({
    kind: "unauthenticated",
    code: "unauthenticated",
    message: "Authorization must be `Bearer <metrics token>` (POSTRIDER_METRICS_TOKEN) or the operator token.",
  });

const notOperator = () =>
  new DomainError({
    kind: "unauthenticated",
    code: "unauthenticated",
    message: "Authorization must be `Bearer <operator token>`; the token is in the server's data directory.",
  });
