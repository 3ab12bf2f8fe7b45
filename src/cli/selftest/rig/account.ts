import { createPublicKey, type JsonWebKeyInput, type KeyObject } from "node:crypto";
import { type Answer, call } from "../../http-client.ts";

/** How a webhook of the self-test answers. */
export type Manner =
  /** Immediately, always 204. */
  | "steady"
  /** 503 to the first delivery of each event, then 204. */
  | "unsteady"
  /** 204 after a moment, so that attempts are under way when a crash comes. */
  | "slow"
  /** Immediately, always 422: the delivery has failed permanently. */
  | "refusing";

export interface Hook {
  /** Its path at the receiver. */
  readonly path: string;
  readonly manner: Manner;
}

export interface Account {
  readonly id: string;
  readonly password: string;
  readonly apiKey: string;
  readonly hooks: readonly Hook[];
  /** Published signing keys by `kid`. */
  readonly publicKeys: ReadonlyMap<string, KeyObject>;
  /** The decoded `whsec_…` secret: deliveries carry a Standard Webhooks HMAC made with it. */
  readonly signingSecret: Buffer;
  /** Expires two hours after the login; `logIn` gets another one. */
  session: string;
}

/** The management side of the server under test, used through its published interface. */
export interface Api {
  /** @throws WrongAnswer when the status is not the expected one; a different error when the server went away */
  send<T>(method: string, path: string, expected: number, options?: { token?: string; body?: unknown }): Promise<T>;
  /** The exact body of a 200, which its parsed value does not preserve. @throws as `send` does */
  read(path: string, token: string): Promise<string>;
}

export class WrongAnswer extends Error {
  override readonly name = "WrongAnswer";
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

export function createApi(base: string): Api {
  async function exchange(
    method: string,
    path: string,
    expected: number,
    { token, body }: { token?: string; body?: unknown } = {},
  ): Promise<Answer> {
    const headers = token === undefined ? {} : { Authorization: `Bearer ${token}` };
    const answer = await call(base + path, { method, headers, body });
    if (answer.status === expected) return answer;
    throw new WrongAnswer(
      answer.status,
      `${method} ${path} answered ${answer.status} instead of ${expected}: ${answer.body}`,
    );
  }

  return {
    send: async <T>(...request: Parameters<typeof exchange>) => (await exchange(...request)).json as T,
    read: async (path, token) => (await exchange("GET", path, 200, { token })).body.toString("utf8"),
  };
}

interface AccountWish {
  readonly hooks: readonly Hook[];
  readonly receiverUrl: string;
  readonly operatorToken: string;
  /** @default enterprise, which has practically no quota */
  readonly tier?: "free" | "enterprise";
}

/** Creates an account and registers its webhooks. */
export async function openAccount(
  api: Api,
  { hooks, receiverUrl, operatorToken, tier = "enterprise" }: AccountWish,
): Promise<Account> {
  const { tenant_id: id, password } = await api.send<{ tenant_id: string; password: string }>(
    "POST",
    "/v1/tenants",
    201,
  );
  await api.send("PUT", `/operator/tenants/${id}/tier`, 200, { token: operatorToken, body: { tier } });
  const session = await logIn(api, { id, password });
  const keys = await api.send<{ key: string }[]>("GET", "/v1/tenants/api-keys", 200, { token: session });
  const body = hooks.map(({ path }) => ({ webhook_url: receiverUrl + path }));
  await api.send("PUT", "/v1/tenants/webhooks", 200, { token: session, body });
  const set = await api.send<{ keys: (JsonWebKeyInput["key"] & { kid: string })[] }>(
    "GET",
    `/v1/tenants/${id}/jwks.json`,
    200,
  );
  const publicKeys = new Map(set.keys.map((key) => [key.kid, createPublicKey({ key, format: "jwk" })]));
  const { secret } = await api.send<{ secret: string }>("GET", "/v1/tenants/signing-secret", 200, { token: session });
  const signingSecret = Buffer.from(secret.replace("whsec_", ""), "base64");
  return { id, password, apiKey: keys[0]?.key ?? "", hooks, publicKeys, signingSecret, session };
}

export async function logIn(api: Api, { id, password }: Pick<Account, "id" | "password">): Promise<string> {
  const body = { loginId: id, password };
  return (await api.send<{ token: string }>("POST", "/v1/tenants/auth/login", 200, { body })).token;
}
