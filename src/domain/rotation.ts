import type { ApiKey, SigningKey, SigningSecret } from "./credentials.ts";
import { type DomainError, rateLimited } from "./errors.ts";

/**
 * How many of each an account may have, because listing reads them all: without a limit, ten thousand rotations made each
 * read of the public keys stop the server for 20 ms. A new API key is never refused, because it may replace a stolen one,
 * so the oldest are forgotten; a signing key stays published (rules, section 8).
 */
export const credentialLimits = { apiKeys: 1_000, signingKeys: 100 };

/** What a new credential does to earlier ones. */
export interface Rotation {
  /** These end when the overlap does. */
  readonly ends: readonly number[];
  readonly forgets: readonly number[];
}

type Row<Credential, Field extends keyof Credential> = { readonly key: number } & Pick<Credential, Field>;

/** Whether it would end later than that, or never. */
const outlasts = (end: number | null, at: number): boolean => end === null || end > at;

/**
 *   active ──another one is made──▶ active until the overlap ends, or its own end if that is sooner
 *      └──a thousand newer ones──▶ forgotten
 *
 * @param keys the earlier ones, the newest first
 */
export function rotateApiKeys(keys: readonly Row<ApiKey, "expiresAt">[], othersEndAt: number): Rotation {
  const kept = keys.slice(0, credentialLimits.apiKeys - 1);
  return {
    ends: kept.filter(({ expiresAt }) => outlasts(expiresAt, othersEndAt)).map(({ key }) => key),
    forgets: keys.slice(kept.length).map(({ key }) => key),
  };
}

export type SigningKeyRotation =
  | ({ readonly kind: "rotated" } & Pick<Rotation, "ends">)
  | { readonly kind: "refused"; readonly error: DomainError };

/**
 *   published ──its time comes──▶ signs ──that of a newer one does──▶ published until it retires
 *      └──a newer one takes over sooner: it never signs──▶ published until it retires
 *
 * None is withdrawn earlier, not even one whose time has not come: where the clock was set back, or another server's is ahead,
 * that one may be signing.
 */
export function rotateSigningKeys(
  keys: readonly Row<SigningKey, "retiresAt">[],
  { othersRetireAt, now }: { othersRetireAt: number; now: number },
): SigningKeyRotation {
  const published = keys.filter((key) => isPublished(key, now));
  if (published.length >= credentialLimits.signingKeys) {
    const retiring = published.flatMap(({ retiresAt }) => retiresAt ?? []);
    const firstRetiresAt = retiring.length > 0 ? Math.min(...retiring) : othersRetireAt;
    return { kind: "refused", error: tooManySigningKeys(firstRetiresAt - now) };
  }
  return {
    kind: "rotated",
    ends: keys.filter(({ retiresAt }) => outlasts(retiresAt, othersRetireAt)).map(({ key }) => key),
  };
}

/** Receivers may still verify with it. */
export const isPublished = ({ retiresAt }: Pick<SigningKey, "retiresAt">, now: number): boolean =>
  outlasts(retiresAt, now);

/**
 *   signs ──another one is made──▶ signs until the overlap ends ──▶ forgotten
 *                                     └──one more is made──▶ forgotten: at most two sign
 */
export const rotateSigningSecrets = (secrets: readonly Row<SigningSecret, "expiresAt">[]): Rotation => ({
  ends: secrets.filter(({ expiresAt }) => expiresAt === null).map(({ key }) => key),
  forgets: secrets.filter(({ expiresAt }) => expiresAt !== null).map(({ key }) => key),
});

/** Whether deliveries are signed with the secret: the one in use, and until the overlap ends the one before it. */
export const isSigning = ({ expiresAt }: Pick<SigningSecret, "expiresAt">, now: number): boolean =>
  outlasts(expiresAt, now);

export const tooManySigningKeys = (leftMs: number) =>
  rateLimited(
    `The account has ${credentialLimits.signingKeys} published signing keys, which is the limit; retry after the number of seconds in Retry-After, when the oldest is withdrawn.`,
    "too_many_signing_keys",
    leftMs / 1000,
  );
