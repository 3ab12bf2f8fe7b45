import { createHmac } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Tier } from "../../src/domain/tenant.ts";
import { sessionLifetimeSeconds } from "../../src/http/session.ts";
import { newToken } from "../../src/lib/id.ts";
import { seedTenant } from "./api-server.ts";
import type { TestApp } from "./test-app.ts";

export interface SeededAccount {
  readonly id: string;
  readonly jwt: string;
  readonly apiKey: string;
}

/** An account with a session, for tests that need many: no password is hashed, and nobody can log in to it. */
export async function seedAccount(
  server: TestApp,
  { tier = "free", webhooks = [] }: { tier?: Tier; webhooks?: string[] } = {},
): Promise<SeededAccount> {
  const { tenant, apiKey } = await seedTenant(server, { tier, webhooks });
  return { id: tenant.id, jwt: issueSession(server, tenant.id), apiKey };
}

/** A session token like one from a login. */
export function issueSession({ dataDir }: Pick<TestApp, "dataDir">, tenantId: string, at = Date.now()): string {
  const secret = readFileSync(join(dataDir, "session-secret"), "utf8").trim();
  const now = Math.floor(at / 1000);
  const claims = {
    sub: tenantId,
    jti: newToken(100),
    ver: 1,
    iat: now,
    exp: now + sessionLifetimeSeconds,
    auth_time: now,
  };
  const encode = (part: object) => Buffer.from(JSON.stringify(part)).toString("base64url");
  const content = `${encode({ alg: "HS256", typ: "JWT" })}.${encode(claims)}`;
  return `${content}.${createHmac("sha256", secret).update(content).digest("base64url")}`;
}
