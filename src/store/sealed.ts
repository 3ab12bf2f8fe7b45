/** Where values are that are sealed with the master key, and how another key takes its place while they are in use. */

/** The tables that have them. What waits in the outbox of mails is sealed, too, and of use for an hour only. */
export const sealedPlaces = ["api_key", "signing_key", "signing_secret", "webhook", "saved_card"] as const;
export type SealedPlace = (typeof sealedPlaces)[number];

/** Of each table. */
export const sealedColumns: Readonly<Record<SealedPlace, string>> = {
  api_key: "sealed",
  signing_key: "sealed_seed",
  signing_secret: "sealed",
  webhook: "sealed_headers",
  saved_card: "sealed",
};

/** What a sealed value is found by. */
export interface SealedRef {
  /** Of the account, or of the billing account. */
  readonly owner: number;
  readonly key: number;
}

export interface SealedValue extends SealedRef {
  readonly ownerId: string;
  /** Of the row itself; empty where it has none. */
  readonly id: string;
  readonly sealed: Uint8Array;
}

/** The first of them comes after all references. */
export const beforeAll: SealedRef = { owner: 0, key: 0 };

export interface SealedSlice {
  readonly values: readonly SealedValue[];
  /** Where the next slice begins; null: this was the last one. */
  readonly next: SealedRef | null;
}

export interface Resealed extends SealedRef {
  readonly was: Uint8Array;
  readonly sealed: Uint8Array;
}

/** What has to be true of every server that shares the store, and of none that starts later. */
export interface KeyOfAll {
  /** See `keyIdOf`. */
  readonly keyId: string;
  /** Everyone can open what it has sealed; or everyone seals with it. */
  readonly by: "known" | "used";
}

export interface SealingVerbs {
  /** The values in about `limit` rows after the given one. */
  sealedValues(place: SealedPlace, after: SealedRef, limit: number): Promise<SealedSlice>;
  /** Replaces those that are still what they were, and answers how many these are. */
  reseal(place: SealedPlace, values: readonly Resealed[]): Promise<number>;
  /** The row of `vault_check` as it is; null where the master key is not looked at. */
  keyCheck(): Promise<Uint8Array | null>;
  /**
   * Replaces it, and tells everyone (`master_key_changed`), if it is still what it was and the condition holds: also for
   * servers that start meanwhile.
   */
  replaceKeyCheck(was: Uint8Array, is: Uint8Array, key: KeyOfAll): Promise<KeyCheckOutcome>;
}

export type KeyCheckOutcome =
  | { readonly kind: "replaced" }
  /** Somebody else has replaced it. */
  | { readonly kind: "overtaken" }
  /** The condition does not hold for these, by name. */
  | { readonly kind: "missing"; readonly nodes: readonly string[] };

/** What values are sealed for, by those who seal them. */
export interface SealedContexts {
  key(tenantId: string, keyId: string): string;
  signingSecret(tenantId: string): string;
  headers(tenantId: string): string;
  card(accountId: string): string;
}

export function contextOf(
  contexts: SealedContexts,
  place: SealedPlace,
  { ownerId, id }: Pick<SealedValue, "ownerId" | "id">,
): string {
  switch (place) {
    case "api_key":
    case "signing_key":
      return contexts.key(ownerId, id);
    case "signing_secret":
      return contexts.signingSecret(ownerId);
    case "webhook":
      return contexts.headers(ownerId);
    case "saved_card":
      return contexts.card(ownerId);
  }
}
