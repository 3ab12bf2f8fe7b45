import * as v from "valibot";
import type { NoteAct } from "../audit/note.ts";
import { DomainError, rateLimited } from "../domain/errors.ts";
import { credentialBodyBytes, type ErasedEndpoint, endpoint, noContent, ok } from "../http/endpoint.ts";
import { invalidRequest } from "../http/error-models.ts";
import { jsonObject } from "../http/validation.ts";
import { clientKey } from "../lib/cidr.ts";
import { formatIso } from "../lib/iso-time.ts";
import type { Log } from "../lib/log.ts";
import { isSameSecret } from "../lib/same-secret.ts";
import type { Limit, Limits } from "../store/limits.ts";
import type { BrowserSessions } from "./browser-session.ts";
import { browserName } from "./origin.ts";

export interface OperatorSessionRouteDeps {
  sessions: BrowserSessions;
  operatorToken(): string;
  limits: Limits;
  log: Log;
  noteAct: NoteAct;
  /** Called for every wrong token, with the address it came from. */
  onWrongToken(address: string): void;
}

/** The same as for sign-ins to an account from one address (rules, section 4). */
const failures: Limit = {
  name: "failed operator sign-ins by address",
  most: 10,
  windowMs: 15 * 60_000,
  keys: 20_000,
};

const path = "/operator/session";
const tag = "Operator";

/** How the operator's page signs in and out. */
export function operatorSessionRoutes(deps: OperatorSessionRouteDeps): ErasedEndpoint[] {
  const { sessions, operatorToken, limits, log, noteAct, onWrongToken } = deps;

  const tell = (act: string, address: string) =>
    log.write("info", "operator.acted", { act, tenantId: null, by: browserName, address });

  /** Counts before comparing and takes it back when the token was right: a thousand concurrent guesses must not all get in. */
  async function check(token: string, address: string): Promise<void> {
    const count = [{ limit: failures, key: clientKey(address) }];
    const turn = await limits.take(count);
    if (!turn.ok) throw tooMany(turn.retryAfterSeconds);
    if (isSameSecret(token, operatorToken())) return limits.giveBack(count);
    onWrongToken(address);
    throw wrongToken();
  }

  return [
    endpoint(
      {
        method: "POST",
        path,
        tag,
        summary: "Sign in with the operator token, for a browser",
        description: "The answer sets a cookie that authenticates the operator's endpoints for 12 hours.",
        access: "none",
        maxBodyBytes: credentialBodyBytes,
        body: jsonObject({ token: v.pipe(v.string("must be text"), v.trim(), v.nonEmpty("must not be empty")) }),
        bodyExample: { token: "svc_op_5f0c1e7a92b84d3655f0c1e7a92b84d3655f0c1e7a92b84d" },
        responses: {
          200: {
            description: "Signed in.",
            schema: v.object({ expires_at: v.string() }),
            example: { expires_at: "2026-03-02T00:34:56.000Z" },
          },
          400: invalidRequest("token must not be empty."),
        },
      },
      async ({ body, address }) => {
        await check(body.token, address);
        const { cookie, expiresAt } = sessions.begin();
        tell("sign in", address);
        await noteAct({ actor: "operator", via: browserName, address, action: "operator.login" });
        return { ...ok({ expires_at: formatIso(expiresAt) }), headers: { "Set-Cookie": cookie } };
      },
    ),

    endpoint(
      {
        method: "DELETE",
        path,
        tag,
        summary: "Sign out",
        description:
          "The browser forgets the cookie. One that was copied holds until its end, or until the token is rotated.",
        access: "none",
        responses: { 204: { description: "Signed out." } },
      },
      ({ headers, address }) => {
        if (sessions.isOpen(headers)) tell("sign out", address);
        return { ...noContent(), headers: { "Set-Cookie": sessions.end() } };
      },
    ),
  ];
}

const wrongToken = () =>
  new DomainError({
    kind: "unauthenticated",
    code: "wrong_operator_token",
    message: "token is not the operator token; that is in the server's data directory.",
  });

const tooMany = (seconds: number) =>
  rateLimited(
    "Too many failed sign-ins; retry after the number of seconds in Retry-After.",
    "too_many_logins",
    seconds,
  );
