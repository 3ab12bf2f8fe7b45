import { call } from "./client.ts";
import type { JwkSet } from "./types.ts";

/**
 * A tenant's public keys as they are now. Others may cache the set for an hour; here a key created just now must be in it,
 * and a response from the browser's cache would carry a time long past.
 */
export const readKeySet = (tenantId: string, signal: AbortSignal) =>
  call<JwkSet>(`/v1/tenants/${tenantId}/jwks.json`, { credential: null, query: { at: Date.now() }, signal });
