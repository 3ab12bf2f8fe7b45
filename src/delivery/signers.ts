import { keyContext } from "../domain/credentials.ts";
import { accountGone } from "../domain/standing.ts";
import type { Clock } from "../lib/clock.ts";
import { createReadCache } from "../lib/read-cache.ts";
import type { Vault } from "../lib/vault.ts";
import type { Store } from "../store/store.ts";
import { importPrivateKey, type SignerMaterial, secretBytes } from "./signature.ts";

/** Tenants whose keys are kept decrypted in memory; about 1 KiB each. */
const maxCachedTenants = 10_000;

/** Keys change on their own (an activation, the end of an old secret), so nothing is kept for longer than this. */
const cacheLifetimeMs = 60_000;

/** The current secret and the one before it: every further one would make each delivery's header longer. */
const maxSecrets = 2;

/** What each tenant's deliveries are signed with, decrypted once and kept for a while. */
export interface Signers {
  /**
   * Returns without a promise if the material is in memory, as it is for all but the first delivery in a minute.
   * @throws unauthenticated `account_gone`
   */
  materialFor(tenantKey: number, tenantId: string): SignerMaterial | Promise<SignerMaterial>;
  /** A key or a secret of the tenant has changed. */
  forget(tenantKey: number): void;
  /** Keys or secrets of any tenant may have changed. */
  forgetAll(): void;
}

export const signingSecretContext = (tenantId: string) => `${tenantId}:signing-secret`;

export interface SignerDeps {
  store: Pick<Store, "signingKeys" | "signingSecrets">;
  vault: Vault;
  clock: Clock;
}

interface Usable {
  readonly material: SignerMaterial;
  readonly until: number;
}

export function createSigners({ store, vault, clock }: SignerDeps): Signers {
  const cache = createReadCache<number, Usable>(maxCachedTenants);

  async function load(tenantKey: number, tenantId: string): Promise<Usable> {
    const now = clock.now();
    const [keys, secrets] = await Promise.all([
      store.signingKeys(tenantKey, now),
      store.signingSecrets(tenantKey, now),
    ]);
    // If the clock was set back, an account's first key may lie in the future; it is published, so it signs anyway.
    const key = keys.find(({ activatesAt }) => activatesAt <= now) ?? keys.at(-1);
    if (!key) throw accountGone();
    const material: SignerMaterial = {
      keyId: key.id,
      privateKey: importPrivateKey(vault.open(key.sealedSeed, keyContext(tenantId, key.id))),
      secrets: secrets
        .slice(0, maxSecrets)
        .map(({ sealed }) =>
          secretBytes(Buffer.from(vault.open(sealed, signingSecretContext(tenantId))).toString("utf8")),
        ),
    };
    const changes = [
      ...keys.map(({ activatesAt }) => activatesAt),
      ...secrets.map(({ expiresAt }) => expiresAt ?? Number.POSITIVE_INFINITY),
    ].filter((at) => at > now);
    return { material, until: Math.min(now + cacheLifetimeMs, ...changes) };
  }

  return {
    materialFor(tenantKey, tenantId) {
      const cached = cache.get(tenantKey);
      if (cached && cached.until > clock.now()) return cached.material;
      return cache.read(tenantKey, () => load(tenantKey, tenantId)).then(({ material }) => material);
    },
    forget: cache.forget,
    forgetAll: cache.forgetAll,
  };
}
