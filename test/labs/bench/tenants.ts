import { readFileSync } from "node:fs";
import { join } from "node:path";
import { receiverPath, tenantCount } from "./event.ts";
import { showProgress } from "./output.ts";

/** The accounts that the load is sent by, each with its webhooks and a quota that the load does not use up. */
export interface Tenant {
  id: string;
  apiKey: string;
  session: string;
}

export interface Api {
  <T>(method: string, path: string, token: string | undefined, body?: unknown): Promise<T>;
  readonly base: string;
}

/** The program hashes at most four passwords at once. */
const concurrency = 4;

export function createApi(port: number): Api {
  const base = `http://127.0.0.1:${port}`;
  async function call<T>(method: string, path: string, token: string | undefined, body?: unknown): Promise<T> {
    const response = await fetch(base + path, {
      method,
      headers: { "Content-Type": "application/json", ...(token !== undefined && { Authorization: `Bearer ${token}` }) },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return (text === "" ? undefined : JSON.parse(text)) as T;
  }
  return Object.assign(call, { base });
}

/** Tenant n delivers to `/hook/<n>` of each receiver, or where `urlOf` says. */
export async function createTenants(
  api: Api,
  dataDir: string,
  receiverPorts: readonly number[],
  urlOf = (n: number, port: number) => `http://127.0.0.1:${port}${receiverPath(n)}`,
): Promise<Tenant[]> {
  const operatorToken = readFileSync(join(dataDir, "data", "operator-token"), "utf8").trim();
  const tenants: Tenant[] = [];
  const numbers = Array.from({ length: tenantCount }, (_, n) => n).values();
  await Promise.all(
    Array.from({ length: concurrency }, async () => {
      for (const n of numbers) {
        tenants[n] = await createTenant(
          api,
          operatorToken,
          receiverPorts.map((port) => urlOf(n, port)),
        );
        showProgress(`creating tenants: ${Object.keys(tenants).length} of ${tenantCount}`);
      }
    }),
  );
  return tenants;
}

async function createTenant(api: Api, operatorToken: string, urls: readonly string[]): Promise<Tenant> {
  const tenant = await loginTenant(api);
  // The quota of a free account is 10,000 events a month: a second and a half.
  await api("PUT", `/operator/tenants/${tenant.id}/tier`, operatorToken, { tier: "enterprise" });
  await api(
    "PUT",
    "/v1/tenants/webhooks",
    tenant.session,
    urls.map((url) => ({ webhook_url: url })),
  );
  return tenant;
}

/** A free account without a webhook, logged in. */
export async function loginTenant(api: Api): Promise<Tenant> {
  const account = await api<{ tenant_id: string; password: string }>("POST", "/v1/tenants", undefined, {});
  const id = account.tenant_id;
  const login = { loginId: id, password: account.password };
  const { token } = await api<{ token: string }>("POST", "/v1/tenants/auth/login", undefined, login);
  const [key] = await api<{ key: string }[]>("GET", "/v1/tenants/api-keys", token);
  if (key === undefined) throw new Error(`The account ${id} has no API key.`);
  return { id, apiKey: key.key, session: token };
}

export interface EventStream {
  messages(): number;
  /** Why it ended before `close`, if it did. */
  failure(): string | undefined;
  close(): void;
}

const lineFeed = 10;

/** One dashboard that looks on. Messages are counted by their closing empty lines; nothing is parsed. */
export async function openStream({ base }: Api, session: string): Promise<EventStream> {
  const abort = new AbortController();
  const headers = { Authorization: `Bearer ${session}` };
  const response = await fetch(`${base}/v1/stream`, { headers, signal: abort.signal });
  if (!response.ok || response.body === null) throw new Error(`GET /v1/stream: ${response.status}`);
  const { body } = response;
  let messages = 0;
  let failure: string | undefined;

  async function read() {
    let last = 0;
    for await (const chunk of body) {
      for (const byte of chunk) {
        if (byte === lineFeed && last === lineFeed) messages++;
        last = byte;
      }
    }
    if (!abort.signal.aborted) failure = "the server ended the stream";
  }
  void read().catch((error: unknown) => {
    if (!abort.signal.aborted) failure = String(error);
  });
  return { messages: () => messages, failure: () => failure, close: () => abort.abort() };
}
