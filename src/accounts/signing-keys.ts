import { generateSecret, generateSigningKey, jwk, type SigningJwk } from "../delivery/signature.ts";
import { signingSecretContext } from "../delivery/signers.ts";
import type { Origin } from "../domain/audit.ts";
import type { SigningKey } from "../domain/credentials.ts";
import { keyContext } from "../domain/credentials.ts";
import { accountGone } from "../domain/standing.ts";
import type { Tenant } from "../domain/tenant.ts";
import type { Clock } from "../lib/clock.ts";
import { newId } from "../lib/id.ts";
import type { Vault } from "../lib/vault.ts";
import type { NewSigningKey, Store } from "../store/store.ts";

/** Rules, section 8: how long a replaced key stays published, and a replaced secret goes on signing. */
const overlapMs = 7 * 24 * 60 * 60 * 1000;

/** A new Ed25519 key pair, its private half encrypted. */
export function makeSigningKey(vault: Vault, tenantId: string): NewSigningKey {
  const id = newId("sk");
  const { publicKey, privateSeed } = generateSigningKey();
  return { id, publicKey, sealedSeed: vault.seal(privateSeed, keyContext(tenantId, id)) };
}

/** A new `whsec_…` secret, encrypted. */
export const makeSigningSecret = (vault: Vault, tenantId: string, secret = generateSecret()): Uint8Array =>
  vault.seal(secret, signingSecretContext(tenantId));

export interface ShownSecret {
  readonly secret: string;
  /** Until then, deliveries are signed with an earlier secret as well; null when there is none. */
  readonly earlierEndsAt: number | null;
}

export interface SigningKeys {
  /** The JWK set: every key that may have signed a delivery still on its way, and the one that will sign next. */
  published(tenant: Tenant): Promise<{ keys: SigningJwk[] }>;
  /** Adds a key that starts signing `activateAfterSeconds` from now. */
  rotate(
    tenant: Tenant,
    activateAfterSeconds: number,
    origin: Origin,
  ): Promise<{ key: SigningKey; earlierPublishedUntil: number }>;
  secret(tenant: Tenant): Promise<ShownSecret>;
  /** @param overlap how long the earlier secret goes on signing alongside it, in ms @default a week */
  rotateSecret(tenant: Tenant, origin: Origin, overlap?: number): Promise<ShownSecret>;
}

export interface SigningKeyDeps {
  store: Pick<Store, "signingKeys" | "rotateSigningKey" | "signingSecrets" | "rotateSigningSecret">;
  clock: Clock;
  vault: Vault;
}

export function createSigningKeys({ store, clock, vault }: SigningKeyDeps): SigningKeys {
  async function secret(tenant: Tenant): Promise<ShownSecret> {
    const [current, earlier] = await store.signingSecrets(tenant.key, clock.now());
    // Every account has one.
    if (!current) throw accountGone();
    return {
      secret: Buffer.from(vault.open(current.sealed, signingSecretContext(tenant.id))).toString("utf8"),
      earlierEndsAt: earlier?.expiresAt ?? null,
    };
  }

  return {
    secret,

    async published(tenant) {
      const keys = await store.signingKeys(tenant.key, clock.now());
      return { keys: keys.map(({ publicKey, id }) => jwk(publicKey, id)) };
    },

    async rotate(tenant, activateAfterSeconds, origin) {
      const now = clock.now();
      const activatesAt = now + activateAfterSeconds * 1000;
      const earlierPublishedUntil = activatesAt + overlapMs;
      const made = makeSigningKey(vault, tenant.id);
      const act = { ...origin, action: "signing_key.rotated", detail: { key: made.id } } as const;
      const key = await store.rotateSigningKey(tenant.key, made, activatesAt, earlierPublishedUntil, now, act);
      return { key, earlierPublishedUntil };
    },

    async rotateSecret(tenant, origin, overlap = overlapMs) {
      const now = clock.now();
      const made = generateSecret();
      const sealed = makeSigningSecret(vault, tenant.id, made);
      const act = { ...origin, action: "signing_secret.rotated" } as const;
      await store.rotateSigningSecret(tenant.key, sealed, now + overlap, now, act);
      // Not read back: a failed read would answer 503, and the retry would rotate again.
      return { secret: made, earlierEndsAt: overlap === 0 ? null : now + overlap };
    },
  };
}
