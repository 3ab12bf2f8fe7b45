import { StartupError, unavailable } from "../domain/errors.ts";
import type { Home } from "../home.ts";
import { messageOf } from "../lib/error-message.ts";
import type { Log } from "../lib/log.ts";
import { createKeyring, type Keyring, type Vault } from "../lib/vault.ts";
import { keyIdOf } from "../secrets.ts";

/** The master keys that this server has, in memory and in its files. */
export interface MasterKeys {
  readonly vault: Keyring;
  /** Names of the files, for people. */
  readonly files: { readonly current: string; readonly next: string };
  /** Picks up keys that have been put into the files since. */
  look(): void;
  /** Whether the current file holds the key in use. If not, somebody has to put it there. */
  isInPlace(): boolean;
  /** Looks, and lists the ids of the keys it has, starting with the one it seals with. */
  announced(): string;
  /** The key that comes next; generated if there is none yet. @throws unavailable `master_key_not_made` */
  next(): Uint8Array;
  /** Makes this key, which is now the store's, the one to seal with, and puts it where the next start looks for it. */
  use(key: Uint8Array): void;
}

export interface MasterKeysDeps {
  /** The one the server started with. */
  masterKey: Uint8Array;
  home: Pick<Home, "masterKeyFiles">;
  log: Log;
}

/** Of putting a key in place, where another server gets in the way. */
const mostTries = 3;

export function createMasterKeys({ masterKey, home: { masterKeyFiles: files }, log }: MasterKeysDeps): MasterKeys {
  const vault = createKeyring(masterKey);
  const said = new Set<string>();
  /** Each message once, because the files are looked at again and again. */
  const warn = (message: string) => {
    if (!said.has(message)) log.write("warn", "storage.warning", { message });
    said.add(message);
  };

  function look(): void {
    try {
      for (const key of [files.readNext(warn), files.readCurrent()]) if (key !== null) vault.learn(key);
    } catch (error) {
      warn(messageOf(error));
    }
  }

  const isInPlace = () => isSame(files.readCurrent(), vault.key);

  return {
    vault,
    files,
    look,
    isInPlace,

    announced() {
      look();
      return vault.keys.map(keyIdOf).join(",");
    },

    next() {
      let key: Uint8Array;
      try {
        key = files.makeNext(warn);
      } catch (error) {
        if (!(error instanceof StartupError)) throw error;
        throw unavailable(error.message, "master_key_not_made");
      }
      if (!isSame(key, vault.key)) return key;
      const remedy = isInPlace() ? "remove it" : `put it into ${files.current}, then remove ${files.next}`;
      throw unavailable(`The key in ${files.next} is the one in use. Try: ${remedy}.`, "master_key_not_made");
    },

    use(key) {
      vault.sealWith(key);
      for (let tries = 1; ; tries += 1) {
        try {
          if (isSame(files.readNext(warn), key) && !isInPlace()) files.promote();
          return;
        } catch (error) {
          // Another server that shares the files may have done it, or be at it.
          if (isInPlace()) return;
          if (tries < mostTries) continue;
          return warn(
            `The master key is the one in ${files.next} from now on, which cannot take the place of ${files.current} ` +
              `(${messageOf(error)}). Try: put it there yourself; until then a start needs both files.`,
          );
        }
      }
    },
  };
}

const isSame = (found: Uint8Array | null, key: Uint8Array) => found !== null && Buffer.compare(found, key) === 0;

/**
 * A server that has been out of touch may have missed that the key was replaced: what it sealed now, nobody might be able to
 * open later.
 */
export const sealedWhile = (isInTouch: () => boolean, vault: Vault): Vault => ({
  open: vault.open,
  seal(plain, context) {
    if (isInTouch()) return vault.seal(plain, context);
    throw unavailable("The server has lost touch with its database; retry the request.", "storage_unavailable");
  },
});
