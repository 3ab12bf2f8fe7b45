import { createApiKeys, createKeyUse, makeApiKey } from "../../../../src/accounts/api-keys.ts";
import { createPasswords } from "../../../../src/accounts/password.ts";
import { makeSigningKey, makeSigningSecret } from "../../../../src/accounts/signing-keys.ts";
import type { Tenant } from "../../../../src/domain/tenant.ts";
import { systemClock } from "../../../../src/lib/clock.ts";
import { newId } from "../../../../src/lib/id.ts";
import type { Vault } from "../../../../src/lib/vault.ts";
import type { Store } from "../../../../src/store/store.ts";
import { receiverPath } from "../event.ts";
import { tenants } from "./history.ts";

/** Of every seeded account. It protects nothing. */
export const seededPassword = "Seeded@2026";

/** As many accounts send the load as the receiver's paths have room for. */
const paths = 100;
/** Replaced by the receiver's port when there is one; port 9 is where the discard service was. */
const placeholderPort = 9;

export const accountId = (tenant: number) => `t${String(tenant).padStart(13, "0")}`;

export const webhookUrl = (port: number, tenant: number) => `http://127.0.0.1:${port}${receiverPath(tenant % paths)}`;

/** The accounts of a history, made by the store. One password hash is enough for all. */
export async function createAccounts(store: Store, vault: Vault, now: number): Promise<Tenant[]> {
  const passwordHash = await createPasswords().hash(seededPassword, {});
  return Promise.all(
    Array.from({ length: tenants }, (_, tenant) => {
      const id = accountId(tenant);
      return store.createTenant(
        {
          id,
          name: `Seeded ${tenant}`,
          email: `sandbox+${id}@postrider.invalid`,
          loginEmail: null,
          tier: "enterprise",
          enforcedTier: "enterprise",
          passwordHash,
          apiKey: makeApiKey(vault, id),
          signingKey: makeSigningKey(vault, id),
          sealedSigningSecret: makeSigningSecret(vault, id),
          webhooks: [{ id: newId("wh"), url: webhookUrl(placeholderPort, tenant), name: "" }],
        },
        now,
      );
    }),
  );
}

export async function findAccount(store: Store, tenant: number): Promise<Tenant> {
  const found = await store.findTenant(accountId(tenant));
  if (found === null)
    throw new Error(`The seeded account ${tenant} is missing. Try: remove the folder and seed it anew.`);
  return found;
}

/** The API keys of the first accounts, in clear. */
export async function readApiKeys(store: Store, vault: Vault, count: number): Promise<string[]> {
  const apiKeys = createApiKeys({
    store,
    clock: systemClock,
    vault,
    keyUse: createKeyUse({ store, clock: systemClock }),
  });
  return Promise.all(
    Array.from({ length: count }, async (_, tenant) => {
      const [record] = await apiKeys.list(await findAccount(store, tenant));
      return record?.key ?? "";
    }),
  );
}
