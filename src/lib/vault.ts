import { createCipheriv, createDecipheriv, createSecretKey, randomBytes } from "node:crypto";

/**
 * Encryption at rest for what must be readable again: API keys, signing keys, webhook secrets (rules, sections 5 and 8).
 *
 * The context is authenticated but not stored. It names the owner of a value, such as `<tenant id>:<key id>`, so that a
 * sealed value that is copied to another row does not open there. It is not secret: it appears in error messages.
 */
export interface Vault {
  /** Encrypts `plain` (text as UTF-8). The same input gives another result each time. */
  seal(plain: Uint8Array | string, context: string): Uint8Array;
  /** @throws Error when the bytes were not sealed by this master key for this context, or have changed since */
  open(sealed: Uint8Array, context: string): Uint8Array;
}

/**
 * A vault of several master keys, as there are while one replaces another: it opens what any of them has sealed, and seals with
 * one. A process remembers every key it has known until it ends, because what it keeps in memory may be sealed with it.
 */
export interface Keyring extends Vault {
  /** The key that it seals with. */
  readonly key: Uint8Array;
  /** All keys that it knows, that one first. */
  readonly keys: readonly Uint8Array[];
  /** Opens what this key has sealed, too, from now on. */
  learn(key: Uint8Array): void;
  /** Seals with this key from now on. */
  sealWith(key: Uint8Array): void;
  /** The key that a value was sealed with; null: none that is known here, or the value is damaged. */
  keyOf(sealed: Uint8Array, context: string): Uint8Array | null;
}

/** @param masterKey what it seals with at first; 32 bytes */
export function createKeyring(masterKey: Uint8Array): Keyring {
  /** The first one seals. */
  let vaults = [withKey(masterKey)];

  function tryEach(sealed: Uint8Array, context: string): { key: Uint8Array; plain: Uint8Array } {
    let reason: unknown;
    for (const { key, vault } of vaults) {
      try {
        return { key, plain: vault.open(sealed, context) };
      } catch (error) {
        reason ??= error;
      }
    }
    throw reason;
  }

  const isKnown = (key: Uint8Array) => vaults.some((known) => isSame(known.key, key));

  return {
    get key() {
      return first(vaults).key;
    },
    get keys() {
      return vaults.map(({ key }) => key);
    },
    seal: (plain, context) => first(vaults).vault.seal(plain, context),
    open: (sealed, context) => tryEach(sealed, context).plain,
    learn(key) {
      if (!isKnown(key)) vaults = [...vaults, withKey(key)];
    },
    sealWith(key) {
      vaults = [withKey(key), ...vaults.filter((known) => !isSame(known.key, key))];
    },
    keyOf(sealed, context) {
      try {
        return tryEach(sealed, context).key;
      } catch {
        return null;
      }
    },
  };
}

const withKey = (key: Uint8Array) => ({ key: Uint8Array.from(key), vault: createVault(key) });

function first<T>([one]: readonly T[]): T {
  if (one === undefined) throw new Error("A ring of keys has one at least");
  return one;
}

const isSame = (a: Uint8Array, b: Uint8Array) => Buffer.compare(a, b) === 0;

/**
 * A sealed value is: key version (1 byte), nonce (12), ciphertext (as long as the plain text), tag (16).
 *
 * There is one version so far; which of several master keys sealed a value is found by trying each. AES-256-GCM with
 * random nonces is safe for 2^32 values under one key (NIST SP 800-38D, section 8.3); a server seals a few for each account.
 *
 * @param masterKey 32 bytes; copied, so the caller may wipe them
 */
export function createVault(masterKey: Uint8Array): Vault {
  if (masterKey.length !== 32) throw new Error(`The master key must be 32 bytes, not ${masterKey.length}`);
  const key = createSecretKey(masterKey);

  return {
    seal(plain, context) {
      const nonce = randomBytes(nonceLength);
      const cipher = createCipheriv("aes-256-gcm", key, nonce, { authTagLength: tagLength });
      cipher.setAAD(Buffer.from(context, "utf8"));
      const bytes = typeof plain === "string" ? Buffer.from(plain, "utf8") : plain;
      const ciphertext = cipher.update(bytes);
      const rest = cipher.final();
      return Buffer.concat([Buffer.of(keyVersion), nonce, ciphertext, rest, cipher.getAuthTag()]);
    },

    open(sealed, context) {
      const cannotOpen = (reason: string) =>
        new Error(`The encrypted value of ${context} cannot be decrypted: ${reason}`);
      if (sealed.length < 1 + nonceLength + tagLength)
        throw cannotOpen("it is too short. Try: restore it from a backup");
      if (sealed[0] !== keyVersion) throw cannotOpen(`its key version ${sealed[0]} is unknown. Try: a newer release`);
      const tagStart = sealed.length - tagLength;
      const nonce = sealed.subarray(1, 1 + nonceLength);
      // Without authTagLength, node:crypto would also accept shorter tags.
      const decipher = createDecipheriv("aes-256-gcm", key, nonce, { authTagLength: tagLength });
      decipher.setAAD(Buffer.from(context, "utf8"));
      decipher.setAuthTag(sealed.subarray(tagStart));
      try {
        const plain = decipher.update(sealed.subarray(1 + nonceLength, tagStart));
        return Buffer.concat([plain, decipher.final()]);
      } catch {
        throw cannotOpen(
          "the master key is wrong or the value was altered. Try: restore the master key that belongs to this database",
        );
      }
    },
  };
}

const keyVersion = 1;
const nonceLength = 12;
const tagLength = 16;
