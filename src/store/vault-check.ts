/**
 * What is sealed in the single row of `vault_check`. If it opens, the master key is the database's. It also holds secrets that
 * were derived from an earlier master key and have to outlive it: addresses of inboxes, references of charges. They are stored
 * in hexadecimal, by purpose.
 *
 * While a rotation of the master key is in progress, it holds the former key as well. So this row alone says how far a
 * rotation has got, and the key that opens it gives access to everything:
 *
 *   sealed with the old key ── one write ─▶ sealed with the new key, the former one in it ── nothing needs it ─▶ without it
 */
export type KeptSecrets = Readonly<Record<string, string>>;

export const vaultCheckContext = "master-key-check";

const text = "postrider";

/** No purpose has this name. */
const formerKeyName = "former master key";

export const toVaultCheck = (kept: KeptSecrets): string =>
  Object.keys(kept).length === 0 ? text : text + JSON.stringify(kept);

export function fromVaultCheck(opened: Uint8Array): KeptSecrets {
  const kept = Buffer.from(opened).toString("utf8").slice(text.length);
  return kept === "" ? {} : JSON.parse(kept);
}

/** The former key, with which some values may still be sealed; null when no rotation is in progress. */
export function formerKeyIn({ [formerKeyName]: former }: KeptSecrets): Uint8Array | null {
  return former === undefined ? null : Buffer.from(former, "hex");
}

export function withFormerKey(kept: KeptSecrets, former: Uint8Array | null): KeptSecrets {
  const { [formerKeyName]: _, ...others } = kept;
  return former === null ? others : { ...others, [formerKeyName]: Buffer.from(former).toString("hex") };
}

/** How many bytes sealing adds to a text; see `createVault`. */
const sealedOverhead = 29;

/**
 * Whether it contains secrets that are stored nowhere else, judging by its length alone. Such a row is never recreated: if it
 * does not open, it is sealed with another key.
 */
export const holdsSecrets = (sealed: Uint8Array): boolean => sealed.length > text.length + sealedOverhead;
