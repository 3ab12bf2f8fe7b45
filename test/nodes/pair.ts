import { afterAll, beforeAll } from "bun:test";
import { createMigratedDatabase, type TestDatabase } from "../support/postgres.ts";
import { type Answer, startTestApp, type TestAccount, type TestApp } from "../support/test-app.ts";

/** What all servers of a database share beside it. */
export const sharedSecrets = {
  masterKey: new Uint8Array(32).fill(7),
  sessionSecret: "of sessions",
  operatorToken: "the operator's",
};

/** Most attempts to one webhook at once, from all servers together. */
export const concurrency = 8;

/** Where the balancer before them would be. */
const balancerUrl = "http://localhost:9";

export interface Pair {
  readonly a: TestApp;
  readonly b: TestApp;
  readonly url: string;
}

/** A whole server with a folder of its own. @param url of its database, or of a proxy before it */
export const startNode = (url: string, name: string): Promise<TestApp> =>
  startTestApp({
    env: {
      POSTRIDER_DATABASE_URL: url,
      POSTRIDER_NODE_NAME: name,
      POSTRIDER_PUBLIC_URL: balancerUrl,
      POSTRIDER_WEBHOOK_CONCURRENCY: String(concurrency),
    },
    secrets: sharedSecrets,
    durability: "waived",
  });

/** Two servers on one database for the tests of a file. */
export function usePair(): () => Pair {
  let pair: Pair | undefined;
  let database: TestDatabase | undefined;
  beforeAll(async () => {
    database = await createMigratedDatabase();
    const { url } = database;
    pair = { a: await startNode(url, "a"), b: await startNode(url, "b"), url };
  });
  afterAll(async () => {
    await Promise.all([pair?.a.stop(), pair?.b.stop()]);
    await database?.remove();
  });
  return () => {
    if (!pair) throw new Error("The servers are not running yet");
    return pair;
  };
}

/** An account as it is seen from each server, in one session. */
export interface SharedAccount {
  readonly atA: TestAccount;
  readonly atB: TestAccount;
}

/** Made at the first server, and used at the second one, which from then on keeps what it knows of it. */
export async function shareAccount({ a, b }: Pair): Promise<SharedAccount> {
  const atA = await a.account();
  const atB = accountAt(b, atA);
  const { status, text } = await atB.ingest({});
  if (status !== 202) throw new Error(`The event was not accepted: ${text}`);
  return { atA, atB };
}

/** The same account and session by way of another server. */
export function accountAt({ request }: TestApp, { id, password, jwt, apiKey }: TestAccount): TestAccount {
  const as = (method: string, path: string, body?: unknown, headers?: Record<string, string>) =>
    request(method, path, { token: jwt, ...(body !== undefined && { body }), ...(headers && { headers }) });
  return {
    id,
    password,
    jwt,
    apiKey,
    get: (path) => as("GET", path),
    post: (path, body, headers) => as("POST", path, body, headers),
    put: (path, body) => as("PUT", path, body),
    delete: (path) => as("DELETE", path),
    ingest: (payload, headers) =>
      request("POST", "/v1/ingest", { token: apiKey, body: { payload }, ...(headers && { headers }) }),
    async setTier(tier) {
      await asOperator({ request }, "PUT", `/tenants/${id}/tier`, { tier });
    },
  };
}

export const asOperator = (
  { request }: Pick<TestApp, "request">,
  method: string,
  path: string,
  body?: unknown,
): Promise<Answer> =>
  request(method, `/operator${path}`, { token: sharedSecrets.operatorToken, ...(body !== undefined && { body }) });
