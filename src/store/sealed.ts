/** Where values sealed with the master key are stored, and how another key takes its place while they are in use. */

/** The tables that contain sealed values. Mails waiting in the outbox are sealed too, but are of use for only an hour. */
export const sealedPlaces = ["api_key", "signing_key", "signing_secret", "webhook", "saved_card"] as const;
export type SealedPlace = (typeof sealedPlaces)[number];

/** The sealed column of each table. */
export const sealedColumns: Readonly<Record<SealedPlace, string>> = {
  api_key: "sealed",
  signing_key: "sealed_seed",
  signing_secret: "sealed",
  webhook: "sealed_headers",
  saved_card: "sealed",
};

/** Identifies a sealed value. */
export interface SealedRef {
  /** Key of the account, or of the billing account. */
  readonly owner: number;
  readonly key: number;
}

export interface SealedValue extends SealedRef {
  readonly ownerId: string;
  /** Id of the row itself; empty where it has none. */
  readonly id: string;
  readonly sealed: Uint8Array;
}

/** Sorts before every reference. */
export const beforeAll: SealedRef = { owner: 0, key: 0 };

export interface SealedSlice {
  readonly values: readonly SealedValue[];
  /** Where the next slice begins; null when this was the last one. */
  readonly next: SealedRef | null;
  /** Rows left out because storage has damaged them; with a page of them, up to as many as its keys are apart. */
  readonly damaged: number;
}

export interface Resealed extends SealedRef {
  readonly was: Uint8Array;
  readonly sealed: Uint8Array;
}

/** What has to be true of every server that shares the store, though not of one that starts later. */
export interface KeyOfAll {
  /** See `keyIdOf`. */
  readonly keyId: string;
  /** `known`: every server can open what the key has sealed; `used`: every server seals with it. */
  readonly by: "known" | "used";
}

export interface ResealedValues {
  readonly replaced: number;
  /** Not replaced, because storage has damaged what that needs. */
  readonly damaged: number;
}

export interface SealingVerbs {
  /** The values in about `limit` rows after the given one. */
  sealedValues(place: SealedPlace, after: SealedRef, limit: number): Promise<SealedSlice>;
  /** Replaces the values that have not changed since. */
  reseal(place: SealedPlace, values: readonly Resealed[]): Promise<ResealedValues>;
  /** The row of `vault_check` as it is; null where the master key is not checked. */
  keyCheck(): Promise<Uint8Array | null>;
  /**
   * Replaces that row and tells every server (`master_key_changed`), provided the row has not changed and the condition holds,
   * also for servers that start in the meantime.
   */
  replaceKeyCheck(was: Uint8Array, is: Uint8Array, key: KeyOfAll): Promise<KeyCheckOutcome>;
}

export type KeyCheckOutcome =
  | { readonly kind: "replaced" }
  /** Another caller has replaced it. */
  | { readonly kind: "overtaken" }
  /** The condition does not hold for these servers, by name. */
  | { readonly kind: "missing"; readonly nodes: readonly string[] };

/** The context that each kind of value is sealed for, as given by the code that seals it. */
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
