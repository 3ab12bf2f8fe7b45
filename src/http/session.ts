import { DomainError } from "../domain/errors.ts";
import type { Tenant } from "../domain/tenant.ts";
import type { Clock } from "../lib/clock.ts";
import { newToken } from "../lib/id.ts";
import type { Store } from "../store/store.ts";

/** Specification, "Limits": a session token lives for 2 hours. */
export const sessionLifetimeSeconds = 2 * 60 * 60;

/** Decisions, section 4: a session is renewed until 24 hours after its login. */
const renewableSeconds = 24 * 60 * 60;

/** What a session token says. Times are seconds since the Unix epoch (RFC 7519). */
export interface SessionClaims {
  /** Tenant id. */
  readonly sub: string;
  /** Id of this token, so that it can be ended alone. */
  readonly jti: string;
  /** The account's session version: a higher one ends all earlier tokens. */
  readonly ver: number;
  readonly iat: number;
  readonly exp: number;
  /** When the login was from which this token descends. */
  readonly auth_time: number;
}

/** Signs and verifies JWTs. */
export interface TokenCodec {
  sign(claims: SessionClaims): Promise<string>;
  /** The claims of a token whose signature holds and which has not expired; false otherwise. */
  verify(token: string): Promise<Record<string, unknown> | false>;
}

export interface Sessions {
  start(tenant: Tenant): Promise<string>;
  /** @throws unauthenticated `session_too_old` */
  renew(tenant: Tenant, claims: SessionClaims): Promise<string>;
  /** @throws unauthenticated for every reason, always with the same words */
  check(token: string): Promise<{ tenant: Tenant; claims: SessionClaims }>;
  end(claims: SessionClaims): Promise<void>;
}

export function createSessions({ codec, store, clock }: { codec: TokenCodec; store: Store; clock: Clock }): Sessions {
  const nowSeconds = () => Math.floor(clock.now() / 1000);

  const issue = (tenant: Tenant, authTime: number) => {
    const iat = nowSeconds();
    return codec.sign({
      sub: tenant.id,
      jti: newToken(100),
      ver: tenant.sessionVersion,
      iat,
      exp: iat + sessionLifetimeSeconds,
      auth_time: authTime,
    });
  };

  return {
    start: (tenant) => issue(tenant, nowSeconds()),

    renew(tenant, claims) {
      if (nowSeconds() >= claims.auth_time + renewableSeconds) {
        throw new DomainError({
          kind: "unauthenticated",
          code: "session_too_old",
          message: "The login is more than 24 hours ago; log in again.",
        });
      }
      return issue(tenant, claims.auth_time);
    },

    async check(token) {
      if (!isHs256(token)) throw notAuthenticated();
      const claims = await codec.verify(token);
      if (!claims || !isSessionClaims(claims) || claims.exp <= nowSeconds()) throw notAuthenticated();
      const tenant = await store.findTenant(claims.sub);
      if (tenant?.sessionVersion !== claims.ver || (await store.isSessionEnded(claims.jti))) throw notAuthenticated();
      return { tenant, claims };
    },

    end: (claims) => store.endSession(claims.jti, claims.exp * 1000),
  };
}

export const notAuthenticated = () =>
  new DomainError({
    kind: "unauthenticated",
    code: "unauthenticated",
    message: "Authorization must be `Bearer <session token>` with a token of a login that has not expired or ended.",
  });

/** The library verifies any HMAC algorithm that fits its key, so the header is read first (RFC 8725, section 3.1). */
function isHs256(token: string): boolean {
  const [head, ...rest] = token.split(".");
  if (head === undefined || rest.length !== 2) return false;
  try {
    const header: unknown = JSON.parse(Buffer.from(head, "base64url").toString("utf8"));
    return typeof header === "object" && header !== null && "alg" in header && header.alg === "HS256";
  } catch {
    return false;
  }
}

/** The library lets a token without `exp` pass, too. */
function isSessionClaims(claims: object): claims is SessionClaims {
  const has = (name: string, type: string) => name in claims && typeof claims[name as keyof typeof claims] === type;
  return (
    has("sub", "string") &&
    has("jti", "string") &&
    has("ver", "number") &&
    has("exp", "number") &&
    has("auth_time", "number")
  );
}
