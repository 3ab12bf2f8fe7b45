import { createHash, timingSafeEqual } from "node:crypto";
import { notAuthenticated, type SessionClaims, type Sessions } from "../accounts/session.ts";
import type { Tenant } from "../domain.ts";
import { DomainError } from "../errors.ts";
import type { Access } from "./endpoint.ts";

/** Who a request comes from, as its credential proves it. */
export interface Identity {
  readonly tenant: Tenant | undefined;
  readonly session: SessionClaims | undefined;
}

export interface AuthDeps {
  sessions: Pick<Sessions, "check">;
  /** @throws unauthenticated */
  authenticateApiKey(key: string): Promise<{ tenant: Tenant }>;
  operatorToken: string;
}

const nobody: Identity = { tenant: undefined, session: undefined };

/** Checks the credential that an endpoint asks for (specification, "Authentication"). */
export function createAuthenticate({ sessions, authenticateApiKey, operatorToken }: AuthDeps) {
  const operatorHash = sha256(operatorToken);

  return async function authenticate(access: Access, headers: Headers): Promise<Identity> {
    if (access === "none") return nobody;
    const token = bearerToken(headers);
    if (access === "operator") {
      if (token === null || !timingSafeEqual(sha256(token), operatorHash)) throw notOperator();
      return nobody;
    }
    if (access === "api_key") {
      const { tenant } = await authenticateApiKey(token ?? "");
      return { tenant, session: undefined };
    }
    if (token === null) throw notAuthenticated();
    const { tenant, claims } = await sessions.check(token);
    return { tenant, session: claims };
  };
}

/** RFC 6750, section 2.1; the scheme is case-insensitive (RFC 9110, section 11.1). */
function bearerToken(headers: Headers): string | null {
  const header = headers.get("authorization");
  if (header === null || header.length < 8 || header.slice(0, 7).toLowerCase() !== "bearer ") return null;
  return header.slice(7).trim();
}

const sha256 = (text: string) => createHash("sha256").update(text).digest();

const notOperator = () =>
  new DomainError({
    kind: "unauthenticated",
    code: "unauthenticated",
    message: "Authorization must be `Bearer <operator token>`; the token is in the data directory of the server.",
  });
