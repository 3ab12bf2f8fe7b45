import type { Database } from "bun:sqlite";
import type { HeldKey, HeldTenant } from "./held-tenants.ts";

/** An API key of a tenant as a transaction sees it; null when the tenant has no such key. */
export type ApiKeyOf = (held: HeldTenant, apiKeyId: string) => HeldKey | null;

/** Every event needs this, so a key is read once and kept for as long as its tenant is. */
export function createApiKeyReader(client: Database): ApiKeyOf {
  const read = client.prepare<HeldKey, [number, string]>(
    "select expires_at as expiresAt from api_key where tenant_key = ?1 and id = ?2",
  );

  return ({ tenant, apiKeys }, apiKeyId) => {
    const known = apiKeys.get(apiKeyId);
    if (known) return known;
    const found = read.get(tenant.key, apiKeyId);
    if (found) apiKeys.set(apiKeyId, found);
    return found;
  };
}
