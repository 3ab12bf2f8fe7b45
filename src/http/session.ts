import * as v from "valibot";
import { DomainError } from "../domain/errors.ts";
import type { Tenant } from "../domain/tenant.ts";
import type { Clock } from "../lib/clock.ts";
import { newToken } from "../lib/id.ts";
import type { Store } from "../store/store.ts";
import { isSafe } from "./cross-site-guard.ts";

/** Specification, "Limits": a session token lives for 2 hours. */
export const sessionLifetimeSeconds = 2 * 60 * 60;

/** Rules, section 17. */
export const viewLifetimeSeconds = 30 * 60;

/** Rules, section 4: a session is renewed until 24 hours after its login. */
const renewableSeconds = 24 * 60 * 60;

/** What a session token says. Times are seconds since the Unix epoch (RFC 7519). */
export const sessionClaims = v.object({
  /** Tenant id. */
  sub: v.string(),
  /** Id of this token, so that it can be revoked on its own. */
  jti: v.string(),
  /** The account's session version: raising it ends all earlier tokens. */
  ver: v.number(),
  exp: v.number(),
  /** When the login took place from which this token descends. */
  auth_time: v.number(),
  /** The operator is viewing the account: nothing can be changed, and no secret is shown. */
  view: v.optional(v.literal(true)),
});
export type SessionClaims = Readonly<v.InferOutput<typeof sessionClaims>>;

/** Signs and verifies JWTs that carry `sessionClaims`. It adds the time of issue itself. */
export interface TokenCodec {
  sign(claims: SessionClaims): Promise<string>;
  /** The claims of a token with a valid signature that follows the rules; false otherwise. */
  verify(token: string, rules: TokenRules): Promise<SessionClaims | false>;
}

interface TokenRules {
  /** If the key decided, any HMAC that fits it would do (RFC 8725, section 3.1). */
  algorithms: ["HS256"];
  currentDate: Date;
}

export interface Sessions {
  start(tenant: Tenant): Promise<string>;
  /** For the operator, to view an account: such a session is read-only and is not renewed. */
  view(tenant: Tenant): Promise<string>;
  /** @throws unauthenticated `session_too_old` */
  renew(tenant: Tenant, claims: SessionClaims): Promise<string>;
  /** @throws unauthenticated, with the same wording whatever the reason */
  check(token: string): Promise<{ tenant: Tenant; claims: SessionClaims }>;
  end(claims: SessionClaims): Promise<void>;
}

export function createSessions({ codec, store, clock }: { codec: TokenCodec; store: Store; clock: Clock }): Sessions {
  const nowSeconds = () => Math.floor(clock.now() / 1000);

  const issue = (tenant: Tenant, authTime: number, more: { exp?: number; view?: true } = {}) =>
    codec.sign({
      sub: tenant.id,
      jti: newToken(100),
      ver: tenant.sessionVersion,
      exp: nowSeconds() + sessionLifetimeSeconds,
      auth_time: authTime,
      ...more,
    });

  return {
    start: (tenant) => issue(tenant, nowSeconds()),

    view: (tenant) => issue(tenant, nowSeconds(), { exp: nowSeconds() + viewLifetimeSeconds, view: true }),

    renew(tenant, claims) {
      if (nowSeconds() >= claims.auth_time + renewableSeconds) {
        throw new DomainError({
          kind: "unauthenticated",
          code: "session_too_old",
          message: "The login is more than 24 hours old; log in again.",
        });
      }
      return issue(tenant, claims.auth_time);
    },

    async check(token) {
      const claims = await codec.verify(token, { algorithms: ["HS256"], currentDate: new Date(clock.now()) });
      if (!claims) throw notAuthenticated();
      const tenant = await store.findSession(claims.sub, claims.jti);
      if (tenant?.sessionVersion !== claims.ver) throw notAuthenticated();
      return { tenant, claims };
    },

    end: (claims) => store.endSession(claims.jti, claims.exp * 1000),
  };
}

/** The same for every reason: the words would tell a guesser how far a token got. */
export const notAuthenticated = () =>
  new DomainError({
    kind: "unauthenticated",
    code: "unauthenticated",
    message: "Authorization must be `Bearer <session token>` with a token that has not expired or been revoked.",
  });

/** @throws forbidden when a session of `Sessions.view` asks for anything but reading what is not secret */
export function checkView({ view }: SessionClaims, method: string, showsSecret: boolean): void {
  if (!view || (isSafe(method) && !showsSecret)) return;
  throw new DomainError({
    kind: "forbidden",
    code: "read_only_session",
    message: showsSecret
      ? "The operator only looks at this account, and its secrets are not shown."
      : "The operator only looks at this account, so nothing can be changed.",
  });
}
