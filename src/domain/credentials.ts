export interface ApiKey {
  readonly id: string;
  /** The key itself, encrypted (`lib/vault.ts`). */
  readonly sealed: Uint8Array;
  readonly createdAt: number;
  readonly lastUsedAt: number | null;
  /** From then on it is refused; null: until it is rotated. */
  readonly expiresAt: number | null;
}

/** Whether a key is still accepted. */
export const isActive = ({ expiresAt }: Pick<ApiKey, "expiresAt">, now: number): boolean =>
  expiresAt === null || expiresAt > now;

/** What a key of an account is encrypted for, so that it does not open in another account's row. */
export const keyContext = (tenantId: string, keyId: string) => `${tenantId}:${keyId}`;

/** A signing key pair of a tenant. The newest active one signs; the others are still published. */
export interface SigningKey {
  readonly id: string;
  readonly publicKey: Uint8Array;
  /** The private half, encrypted. */
  readonly sealedSeed: Uint8Array;
  readonly activatesAt: number;
  /** From then on it is no longer published; null: the current key. */
  readonly retiresAt: number | null;
}

/** A Standard Webhooks secret, `whsec_…`; for a while after a rotation the earlier one signs too. */
export interface SigningSecret {
  /** The secret, encrypted. */
  readonly sealed: Uint8Array;
  readonly expiresAt: number | null;
}

/**
 * Rules, section 4: an address counts as known for 30 days after a login, and is not blocked by what others do to the
 * account. Otherwise anyone could lock its owner out.
 */
export const knownAddressLifetimeMs = 30 * 24 * 60 * 60 * 1000;

/**
 * What has ended is removed this much later than it ended. A clock that is ahead for a while would remove it for good: a token
 * whose session was ended would be valid again, and a key that is still published would be gone.
 */
export const removalMarginMs = 24 * 60 * 60 * 1000;
