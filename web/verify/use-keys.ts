import { call } from "../api/client.ts";
import { readKeySet } from "../api/key-set.ts";
import type { JwkSet, SigningSecret } from "../api/types.ts";
import { useRefresh } from "../stream/live.ts";
import { type Loaded, useLoaded } from "../stream/load.ts";

/** What a tenant's deliveries are verified with. */
export interface VerifyKeys {
  readonly jwks: JwkSet;
  readonly secret: SigningSecret;
}

const refreshEveryMs = 1_000;

export function useVerifyKeys(tenantId: string): Loaded<VerifyKeys> {
  const keys = useLoaded(`keys of ${tenantId}`, async (signal) => {
    const [jwks, secret] = await Promise.all([
      readKeySet(tenantId, signal),
      call<SigningSecret>("/v1/tenants/signing-secret", { signal }),
    ]);
    return { jwks, secret };
  });
  useRefresh(["account.changed"], refreshEveryMs, keys.reload);
  return keys;
}
