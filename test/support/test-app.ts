import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { PasswordCost } from "../../src/accounts/password.ts";
import { type App, type AppDeps, createApp } from "../../src/app.ts";
import { createRunOwn } from "../../src/cli/run-own.ts";
import { loadConfig } from "../../src/config.ts";
import { openDataDir } from "../../src/data-dir.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { createLog } from "../../src/lib/log.ts";
import { operatorTokenFile } from "../../src/secrets.ts";
import { putEmptyDatabase } from "./empty-database.ts";
import { dataOf, isOnPostgres, removeData } from "./server-data.ts";

/** A complete server on a free port with a temporary folder, real HTTP and a real database (see `server-data.ts`). */
export interface TestApp {
  readonly app: App;
  readonly url: string;
  readonly dataDir: string;
  /** Every line that the server logged, from debug level up. */
  readonly log: string[];
  readonly operatorToken: string;
  request(method: string, path: string, options?: RequestOptions): Promise<Answer>;
  /** Creates a free account and logs it in. */
  account(body?: Record<string, unknown>): Promise<TestAccount>;
  /** Logs in an existing account. */
  signIn(id: string, password: string): Promise<TestAccount>;
  /** Stops the server; `keepData` leaves its data for another server. */
  stop(options?: { keepData?: boolean }): Promise<void>;
}

export interface RequestOptions {
  token?: string;
  /** Sent as JSON; strings and bytes are sent as is. */
  body?: unknown;
  headers?: Record<string, string>;
}

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** The parsed body; undefined when there is none or it is no JSON. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into bodies of every shape
  readonly body: any;
}

export interface TestAccount {
  readonly id: string;
  readonly password: string;
  readonly jwt: string;
  readonly apiKey: string;
  get(path: string): Promise<Answer>;
  post(path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>;
  put(path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>;
  delete(path: string): Promise<Answer>;
  /** Posts an event with the account's API key. */
  ingest(payload: unknown, headers?: Record<string, string>): Promise<Answer>;
  /** Raises the tier, as the operator does. */
  setTier(tier: string): Promise<void>;
}

export interface TestAppOptions extends Partial<AppDeps> {
  /** Settings, in the form of environment variables. */
  env?: Record<string, string>;
  dataDir?: string;
}

/** The minimum: even tests that are not about passwords wait for two hashes per account. */
const passwordCost: PasswordCost = { memoryCost: 8, timeCost: 1 };

/** The parts of a data directory that `createApp` takes. */
export function enterFolder(folder: string, warn?: (message: string) => void, masterKeyFile: string | null = null) {
  const home = openDataDir(folder, warn, { masterKeyFile, isShared: false });
  return { secrets: home.secrets, storeFolder: home.path, home };
}

export async function startTestApp({ env = {}, dataDir, ...deps }: TestAppOptions = {}): Promise<TestApp> {
  const folder = dataDir ?? mkdtempSync(join(tmpdir(), "postrider-test-"));
  const lines: string[] = [];
  const clock = deps.clock ?? systemClock;
  const log = createLog({
    level: "debug",
    format: "json",
    now: () => clock.now(),
    out: (line) => void lines.push(line),
  });
  const data = await dataOf(folder);
  const config = loadConfig(
    {
      POSTRIDER_DATA_DIR: folder,
      ...data.env,
      POSTRIDER_PORT: "0",
      POSTRIDER_MIN_FREE_DISK: "0",
      POSTRIDER_RETRY_SCHEDULE: "50ms,50ms",
      POSTRIDER_PAYMENTS: "off",
      ...env,
    },
    new Map(),
  );
  const warn = (message: string) => log.write("warn", "storage.warning", { message });
  const entered = enterFolder(folder, warn, config.masterKeyFile);
  if (dataDir === undefined && !isOnPostgres) await putEmptyDatabase(folder);
  const runOwn = createRunOwn({ ...env }, folder);
  const given = { runOwn, senderThread: clock === systemClock, passwordCost, ...entered, ...data.deps, ...deps };
  const app = await createApp(config, { ...given, clock, log });
  const { port } = await app.start();
  const url = `http://127.0.0.1:${port}`;
  const operatorToken = (await Bun.file(join(folder, operatorTokenFile)).text()).trim();

  async function request(method: string, path: string, { token, body, headers }: RequestOptions = {}): Promise<Answer> {
    const isRaw = typeof body === "string" || body instanceof Uint8Array;
    const response = await fetch(`${url}${path}`, {
      method,
      redirect: "manual",
      headers: {
        ...(token !== undefined && { Authorization: `Bearer ${token}` }),
        ...(body !== undefined && { "Content-Type": "application/json" }),
        ...headers,
      },
      ...(body !== undefined && { body: isRaw ? body : JSON.stringify(body) }),
    });
    const text = await response.text();
    return { status: response.status, headers: response.headers, text, body: parse(text) };
  }

  async function account(body?: Record<string, unknown>): Promise<TestAccount> {
    const created = await request("POST", "/v1/tenants", { body: body ?? {} });
    return signIn(created.body.tenant_id, created.body.password);
  }

  async function signIn(id: string, password: string): Promise<TestAccount> {
    const login = await request("POST", "/v1/tenants/auth/login", { body: { loginId: id, password } });
    const jwt: string = login.body.token;
    const keys = await request("GET", "/v1/tenants/api-keys", { token: jwt });
    const apiKey: string = keys.body[0].key;
    return {
      id,
      password,
      jwt,
      apiKey,
      get: (path) => request("GET", path, { token: jwt }),
      post: (path, payload, headers) =>
        request("POST", path, {
          token: jwt,
          ...(payload !== undefined && { body: payload }),
          ...(headers && { headers }),
        }),
      put: (path, payload, headers = {}) => request("PUT", path, { token: jwt, body: payload, headers }),
      delete: (path) => request("DELETE", path, { token: jwt }),
      ingest: (payload, headers) =>
        request("POST", "/v1/ingest", { token: apiKey, body: { payload }, ...(headers && { headers }) }),
      async setTier(tier) {
        await request("PUT", `/operator/tenants/${id}/tier`, { token: operatorToken, body: { tier } });
      },
    };
  }

  return {
    app,
    url,
    dataDir: folder,
    log: lines,
    operatorToken,
    request,
    account,
    signIn,
    async stop({ keepData = false } = {}) {
      await app.stop();
      if (!keepData) await removeData(folder);
    },
  };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
