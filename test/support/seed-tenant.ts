import { readFileSync } from "node:fs";
import { join } from "node:path";
import { makeSigningKey, makeSigningSecret } from "../../src/accounts/signing-keys.ts";
import type { Tenant, Tier } from "../../src/domain/tenant.ts";
import { newApiKey, newId, newTenantId } from "../../src/lib/id.ts";
import { createVault } from "../../src/lib/vault.ts";
import type { Store } from "../../src/store/store.ts";

export interface SeededTenant {
  tier?: Tier;
  enforcedTier?: Tier | null;
  webhooks?: readonly string[];
}

/** A tenant put straight into the store: no password is hashed, and no rule about webhooks is checked. */
export async function seedTenantIn(
  { store, dataDir }: { store: Pick<Store, "createTenant">; dataDir: string },
  { tier = "free", enforcedTier = tier, webhooks = [] }: SeededTenant,
): Promise<{ tenant: Tenant; apiKey: string }> {
  const vault = createVault(Buffer.from(readFileSync(join(dataDir, "master-key"), "utf8").trim(), "hex"));
  const id = newTenantId();
  const apiKey = newApiKey();
  const apiKeyId = newId("key");
  const tenant = await store.createTenant(
    {
      id,
      name: "Seeded",
      email: `seeded+${id}@postrider.invalid`,
      loginEmail: null,
      tier,
      enforcedTier,
      passwordHash: "none",
      apiKey: {
        id: apiKeyId,
        hash: new Bun.CryptoHasher("sha256").update(apiKey).digest(),
        sealed: vault.seal(apiKey, `${id}:${apiKeyId}`),
      },
      signingKey: makeSigningKey(vault, id),
      sealedSigningSecret: makeSigningSecret(vault, id),
      webhooks: webhooks.map((url) => ({ id: newId("wh"), url, name: "" })),
    },
    Date.now(),
  );
  return { tenant, apiKey };
}
