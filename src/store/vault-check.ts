/**
 * What stands sealed in the one row of `vault_check`: that it opens tells that the master key is the database's. In it are
 * also secrets that were worked out from an earlier master key, and have to outlive it: addresses of inboxes, references of
 * charges. In hexadecimal digits, by purpose.
 */
export type KeptSecrets = Readonly<Record<string, string>>;

export const vaultCheckContext = "master-key-check";

const text = "postrider";

export const toVaultCheck = (kept: KeptSecrets): string =>
  Object.keys(kept).length === 0 ? text : text + JSON.stringify(kept);

export function fromVaultCheck(opened: Uint8Array): KeptSecrets {
  const kept = Buffer.from(opened).toString("utf8").slice(text.length);
  return kept === "" ? {} : JSON.parse(kept);
}
