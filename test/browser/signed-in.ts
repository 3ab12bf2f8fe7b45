import type { Page } from "playwright-core";

/** A free account of a test, and what its owner does outside the dashboard. */
export interface Account {
  readonly id: string;
  readonly password: string;
  readonly apiKey: string;
  readonly jwt: string;
  /** @param payload JSON text, taken to the byte; or a value @returns the event's id */
  ingest(payload: unknown, beside?: { readonly ordering_key?: string }): Promise<string>;
  /** In one request, so in one moment. @returns the ids, oldest first */
  ingestAll(payloads: readonly unknown[]): Promise<string[]>;
  setWebhooks(...webhooks: readonly { webhook_url: string; name?: string; ordered?: boolean }[]): Promise<void>;
  get<T>(path: string): Promise<T>;
  post(path: string, body: unknown): Promise<void>;
  put(path: string, body: unknown): Promise<void>;
  /** Makes a page that of somebody who has signed in to this account. */
  signIn(page: Page): Promise<void>;
}

export async function openAccount(url: string): Promise<Account> {
  async function send<T>(method: string, path: string, credential: string | null, body?: unknown): Promise<T> {
    const answer = await fetch(url + path, {
      method,
      headers: {
        ...(credential !== null && { Authorization: `Bearer ${credential}` }),
        ...(body !== undefined && { "Content-Type": "application/json" }),
      },
      ...(body !== undefined && { body: typeof body === "string" ? body : JSON.stringify(body) }),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
    return (text === "" ? null : JSON.parse(text)) as T;
  }

  const created = await send<{ tenant_id: string; password: string }>("POST", "/v1/tenants", null, {});
  const login = { loginId: created.tenant_id, password: created.password };
  const { token: jwt } = await send<{ token: string }>("POST", "/v1/tenants/auth/login", null, login);
  const [key] = await send<{ key: string }[]>("GET", "/v1/tenants/api-keys", jwt);
  const apiKey = key?.key ?? "";
  const textOf = (payload: unknown) => (typeof payload === "string" ? payload : JSON.stringify(payload));

  return {
    id: created.tenant_id,
    password: created.password,
    apiKey,
    jwt,
    async ingest(payload, beside = {}) {
      const fields = Object.entries(beside).map(([name, value]) => `,"${name}":${JSON.stringify(value)}`);
      const body = `{"payload":${textOf(payload)}${fields.join("")}}`;
      return (await send<{ eventId: string }>("POST", "/v1/ingest", apiKey, body)).eventId;
    },
    async ingestAll(payloads) {
      const body = `{"events":[${payloads.map((payload) => `{"payload":${textOf(payload)}}`).join()}]}`;
      return (await send<{ eventIds: string[] }>("POST", "/v1/ingest/batch", apiKey, body)).eventIds;
    },
    async setWebhooks(...webhooks) {
      await send("PUT", "/v1/tenants/webhooks", jwt, webhooks);
    },
    get: (path) => send("GET", path, jwt),
    async post(path, body) {
      await send("POST", path, jwt, body);
    },
    async put(path, body) {
      await send("PUT", path, jwt, body);
    },
    async signIn(page) {
      const keep = `sessionStorage.setItem("postrider.session", ${JSON.stringify(jwt)})`;
      // The empty document that a page begins and ends with has no storage.
      await page.addInitScript(`if (location.protocol.startsWith("http")) ${keep}`);
    },
  };
}
