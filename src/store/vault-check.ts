/**
 * What stands sealed in the one row of `vault_check`: that it opens tells that the master key is the database's. In it are
 * also secrets that were worked out from an earlier master key, and have to outlive it: addresses of inboxes, references of
 * charges. In hexadecimal digits, by purpose.
 *
 * While a rotation of the master key is under way it holds the former key as well. So the row is the one place that says
 * how far a rotation is, and whoever has the key that opens it can read all there is:
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

/** The key of which values may be left; null: no rotation is under way. */
export function formerKeyIn({ [formerKeyName]: former }: KeptSecrets): Uint8Array | null {
  return former === undefined ? null : Buffer.from(former, "hex");
}

export function withFormerKey(kept: KeptSecrets, former: Uint8Array | null): KeptSecrets {
  const { [formerKeyName]: _, ...others } = kept;
  return former === null ? others : { ...others, [formerKeyName]: Buffer.from(former).toString("hex") };
}

/** A sealed text is longer than itself by so many bytes; see `createVault`. */
const sealedOverhead = 29;

/**
 * Whether secrets are in it that stand nowhere else, by its length alone. Such a row is never made anew: one that does not
 * open is sealed with another key.
 */
export const holdsSecrets = (sealed: Uint8Array): boolean => sealed.length > text.length + sealedOverhead;
