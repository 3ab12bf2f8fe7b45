import { StartupError } from "../../domain/errors.ts";
import type { Clock } from "../../lib/clock.ts";
import { plainText } from "../table.ts";
import { refusalOf, temporaryFailureIn, textIn } from "./answer.ts";
import { TemporaryFailure } from "./failure.ts";
import type { Patience } from "./patience.ts";
import type { Reply, ServerClient } from "./server.ts";

export interface Credentials {
  /** An existing session. */
  readonly token: string | null;
  /** With these, a session that has ended is replaced by a new one. */
  readonly login: { readonly loginId: string; readonly password: string } | null;
  /** The account that was typed, which a token must not overrule; null when none was. */
  readonly typedLogin: string | null;
}

/** A session that outlives its tokens: it is renewed while possible, and begun again where there is a password. */
export interface Session {
  readonly tenantId: string;
  /** The server's clock when the session was opened; null when the server does not say. */
  readonly serverTime: number | null;
  /** The token in use. */
  token(): string;
  /**
   * Another token to use in place of this one, which the server has refused.
   * @throws StartupError when there is none to be had
   */
  replace(refused: string): Promise<string>;
  /** Stops further renewals. The session itself is left as it is. */
  close(): void;
}

export interface SessionDeps {
  server: ServerClient;
  clock: Clock;
  patience: Patience;
}

/** How long before it expires a token is renewed: long enough to outlast a server update. */
const renewBeforeEndMs = 10 * 60_000;
const renewAgainAfterMs = 60_000;

/** Signs in. @throws StartupError with what to do */
export async function openSession(
  { token: given, login, typedLogin }: Credentials,
  { server, clock, patience }: SessionDeps,
): Promise<Session> {
  let current = "";
  let cancelRenewal = () => {};
  let closed = false;
  let replacing: Promise<string> | null = null;

  /** @param isNew just issued: then its own times tell how long it lives, whatever this machine's clock says */
  function use(token: string, isNew: boolean): string {
    current = token;
    const { exp, iat } = claimsIn(token);
    const livesMs = (isNew ? exp - iat : exp - clock.now() / 1000) * 1000;
    if (Number.isFinite(livesMs)) renewIn(Math.max(0, livesMs - renewBeforeEndMs));
    return token;
  }

  function renewIn(delayMs: number): void {
    cancelRenewal();
    if (!closed) cancelRenewal = clock.after(delayMs, () => void renewQuietly());
  }

  /** If this fails, the token stays valid for a while, and `replace` deals with its expiry. */
  async function renewQuietly(): Promise<void> {
    try {
      const reply = await refresh();
      if (reply.status === 200) use(tokenIn(server, reply), true);
    } catch (error) {
      if (error instanceof TemporaryFailure) renewIn(renewAgainAfterMs);
    }
  }

  async function refresh(): Promise<Reply> {
    const reply = await server.call("POST", "/v1/tenants/auth/refresh", { token: current });
    const failure = temporaryFailureIn(reply);
    if (failure) throw failure;
    return reply;
  }

  /** One replacement at a time: several requests run into an expired token together. */
  function replace(refused: string): Promise<string> {
    if (refused !== current) return Promise.resolve(current);
    replacing ??= begin().finally(() => {
      replacing = null;
    });
    return replacing;
  }

  async function begin(): Promise<string> {
    if (login === null) {
      throw new StartupError(
        "POSTRIDER_TOKEN is invalid or has expired, and a token alone cannot start a new session. " +
          "Try: POSTRIDER_LOGIN and POSTRIDER_PASSWORD, or the token of a new login.",
      );
    }
    const reply = await patience(() => logIn(server, login));
    if (given !== null) checkSuccessor(given, textIn(reply.json, "tenant_id"), login.loginId);
    return use(tokenIn(server, reply), true);
  }

  async function lookUp(token: string): Promise<Reply> {
    const reply = await server.call("GET", "/v1/tenants/me", { token });
    const failure = temporaryFailureIn(reply);
    if (failure) throw failure;
    return reply;
  }

  if (given === null) await begin();
  else use(given, false);
  const me = await patience(() => withSession({ token: () => current, replace }, lookUp));
  const tenantId = textIn(me.json, "tenant_id");
  if (tenantId === null) throw refusalOf(server, me);
  if (given !== null && typedLogin !== null && !isAccount(typedLogin, [tenantId, textIn(me.json, "email")])) {
    throw new StartupError(
      `POSTRIDER_TOKEN belongs to ${tenantId}, but --login names ${typedLogin}. Try: only one of the two.`,
    );
  }

  return {
    tenantId,
    serverTime: me.serverTime,
    token: () => current,
    replace,
    close() {
      closed = true;
      cancelRenewal();
    },
  };
}

/** Makes a request with the session's token, and once more with a new token if that one is refused. */
export async function withSession(
  session: Pick<Session, "token" | "replace">,
  request: (token: string) => Promise<Reply>,
): Promise<Reply> {
  const token = session.token();
  const reply = await request(token);
  return reply.status === 401 ? request(await session.replace(token)) : reply;
}

async function logIn(server: ServerClient, login: NonNullable<Credentials["login"]>): Promise<Reply> {
  const body = Buffer.from(JSON.stringify(login));
  const reply = await server.call("POST", "/v1/tenants/auth/login", { body });
  const failure = temporaryFailureIn(reply);
  if (failure) throw failure;
  if (reply.status === 200) return reply;
  const words = refusalOf(server, reply).message;
  if (reply.status !== 400 && reply.status !== 401) throw new StartupError(words);
  throw new StartupError(
    `${words} Try: check POSTRIDER_LOGIN (or --login), POSTRIDER_PASSWORD, and that the account is on ${server.url}.`,
  );
}

function tokenIn(server: ServerClient, reply: Reply): string {
  const token = textIn(reply.json, "token");
  if (token === null) throw refusalOf(server, reply);
  return token;
}

/**
 * What replaces a given token is a session of the same account: else a token that expires would have a script act on another.
 * @throws StartupError
 */
function checkSuccessor(given: string, tenantId: string | null, loginId: string): void {
  const { sub } = claimsIn(given);
  if (sub !== null && sub === tenantId) return;
  const owner = sub === null ? "does not name its account" : `belongs to ${plainText(sub)}`;
  throw new StartupError(
    `POSTRIDER_TOKEN is invalid or has expired, and ${owner}. Try: no POSTRIDER_TOKEN, to sign in to ${loginId}, or the token of a new login.`,
  );
}

/** A login is a tenant id, or an e-mail in any letter case. */
const isAccount = (login: string, names: readonly (string | null)[]) =>
  names.some((name) => name?.toLowerCase() === login.toLowerCase());

/**
 * What a token says about itself: times in seconds, NaN where it says nothing, and its account. Only the server can tell whether
 * it is genuine.
 */
function claimsIn(token: string): { exp: number; iat: number; sub: string | null } {
  try {
    const claims: unknown = JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString("utf8"));
    const { exp, iat, sub } = claims as Record<string, unknown>;
    return { exp: Number(exp), iat: Number(iat), sub: typeof sub === "string" ? sub : null };
  } catch {
    return { exp: Number.NaN, iat: Number.NaN, sub: null };
  }
}
