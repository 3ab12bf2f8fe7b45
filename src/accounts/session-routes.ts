import { byAccount } from "../domain/audit.ts";
import { credentialBodyBytes, type ErasedEndpoint, endpoint, noContent, ok } from "../http/endpoint.ts";
import { failure, invalidRequest, refusal } from "../http/error-models.ts";
import type { Sessions } from "../http/session.ts";
import type { Store } from "../store/store.ts";
import { type Login, wrongCredentials } from "./login.ts";
import * as m from "./model.ts";

export interface SessionRouteDeps {
  store: Pick<Store, "endAllSessions">;
  sessions: Sessions;
  login: Login;
}

const tag = "Sessions";

const authenticated = {
  description: "A session token, valid for two hours.",
  schema: m.authenticated,
  example: m.authenticatedExample,
};

const tooManyLogins = failure(
  "Too many failed logins for this account or from this address, or too many logins in a minute.",
  "too_many_logins",
  "Too many failed logins; retry after the number of seconds in Retry-After.",
);

/** Session tokens: get one, renew it, end it; and the password, which ends them all when it changes. */
export function sessionRoutes({ store, sessions, login }: SessionRouteDeps): ErasedEndpoint[] {
  return [
    endpoint(
      {
        method: "POST",
        path: "/v1/tenants/auth/login",
        tag,
        summary: "Log in",
        description: "loginId is the tenant id or, on tiers above free, the e-mail address.",
        access: "none",
        body: m.loginBody,
        bodyExample: m.loginExample,
        maxBodyBytes: credentialBodyBytes,
        limit: ({ address }) => login.checkAddress(address),
        responses: {
          200: authenticated,
          400: invalidRequest("loginId is required.", "field_required"),
          401: refusal("The account does not exist, or the password is wrong.", wrongCredentials()),
          429: tooManyLogins,
        },
      },
      async ({ body, address }) => {
        const tenant = await login.logIn(body, address);
        return ok(m.authenticatedAs(tenant, await sessions.start(tenant)));
      },
    ),

    endpoint(
      {
        method: "POST",
        path: "/v1/tenants/auth/refresh",
        tag,
        summary: "Get a new session token",
        description: "Possible until 24 hours after the login, then 401.",
        access: "session",
        responses: { 200: authenticated },
      },
      async ({ tenant, session }) => ok(m.authenticatedAs(tenant, await sessions.renew(tenant, session))),
    ),

    endpoint(
      {
        method: "POST",
        path: "/v1/tenants/auth/logout",
        tag,
        summary: "End this session, or all sessions",
        access: "session",
        body: m.logoutBody,
        bodyOptional: true,
        bodyExample: { all: true },
        responses: {
          204: { description: "The token, or with `all` every token of the account, has been revoked." },
          400: invalidRequest("all must be true or false."),
        },
      },
      async ({ tenant, session, body, address }) => {
        if (body.all) await store.endAllSessions(tenant.key, { ...byAccount(address), action: "logout.all" });
        else await sessions.end(session);
        return noContent();
      },
    ),

    endpoint(
      {
        method: "PUT",
        path: "/v1/tenants/password",
        tag,
        summary: "Change the password",
        description: "Revokes every earlier session token and returns a new one.",
        access: "session",
        body: m.changePasswordBody,
        limit: ({ address, tenant }) => login.checkAddress(address, tenant),
        bodyExample: m.changePasswordExample,
        responses: {
          200: authenticated,
          400: invalidRequest("current_password is not the password of this account.", "wrong_password"),
          429: tooManyLogins,
        },
      },
      async ({ tenant, body, address }) => {
        const changed = await login.changePassword(tenant, body, address);
        return ok(m.authenticatedAs(changed, await sessions.start(changed)));
      },
    ),
  ];
}
