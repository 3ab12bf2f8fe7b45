import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { cardContext } from "../billing/card-vault.ts";
import { loadConfig } from "../config.ts";
import { masterKeyIsIn, openDataDir } from "../data-dir.ts";
import { headersContext } from "../delivery/own-headers.ts";
import { signingSecretContext } from "../delivery/signers.ts";
import { keyContext } from "../domain/credentials.ts";
import { StartupError } from "../domain/errors.ts";
import { messageOf } from "../lib/error-message.ts";
import { keyFilesOf, makeNextKey, promoteNextKey } from "../master-key-file.ts";
import { deriveSecret, outlivingPurposes } from "../secrets.ts";
import { rotateStoreKey, storeFits, storeIsSealedWith } from "../store/open.ts";
import { type Command, dataDirFlag, jsonFlag } from "./command.ts";
import { exitCode } from "./io.ts";

/** `postrider rotate-key`: another master key, while no server runs. */
export const rotateKeyCommand: Command = {
  words: ["rotate-key"],
  operands: [],
  flags: [dataDirFlag, jsonFlag],
  summary: "Replace the master key and seal everything anew, while no server runs",
  details: `API keys, signing keys, secrets and whatever else is sealed get a new key, all in one
transaction. The new key is in master-key.next (or beside POSTRIDER_MASTER_KEY_FILE)
until then. Whenever it is interrupted, all is under the old key or all under the new one:
the next start, or the same command again, ends it. Make a backup afterwards.`,
  async run({ flags }, io) {
    const { dataDir: folder, databaseUrl, masterKeyFile } = loadConfig(io.env, flags, io.err);
    if (databaseUrl !== null) throw new StartupError(onPostgres);
    // Nothing is made where there is nothing: it would be the wrong folder.
    if (!masterKeyIsIn(folder) && !(masterKeyFile !== null && existsSync(folder))) {
      throw new StartupError(`No server has run on ${resolve(folder)}. Try: name its data directory with --data-dir.`);
    }
    // With its lock: no server runs on it.
    const dataDir = openDataDir(folder, io.err, { masterKeyFile, isShared: false });
    try {
      const { path, secrets } = dataDir;
      if (!storeFits(path)) throw new StartupError(anotherSchema);
      const files = keyFilesOf(path, masterKeyFile);
      const next = makeNextKey(files, io.err);
      if (next.equals(secrets.masterKey)) throw new StartupError(`${files.next} is the key in use. Try: remove it.`);
      const isDone = storeIsSealedWith(path, next);
      const done = isDone
        ? { resealed: 0, damaged: 0 }
        : rotateStoreKey({
            dataDir: path,
            from: secrets.masterKey,
            to: next,
            contexts: {
              key: keyContext,
              signingSecret: signingSecretContext,
              headers: headersContext,
              card: cardContext,
            },
            outliving: Object.fromEntries(
              outlivingPurposes.map((purpose) => [purpose, deriveSecret(secrets.masterKey, purpose).toString("hex")]),
            ),
            onProgress: (resealed) => io.progress(`Sealing anew: ${resealed}`),
          });
      io.progress("");
      try {
        promoteNextKey(files);
      } catch (error) {
        throw new StartupError(
          `Everything is sealed with the new key, but ${files.next} cannot take the place of ${files.current} ` +
            `(${messageOf(error)}). Try: put it there yourself, before the next start.`,
        );
      }
      if (flags.has(jsonFlag.name)) io.out(JSON.stringify(done));
      else {
        io.out(`${done.resealed} values are sealed with the new master key, which is in ${files.current}.`);
        if (done.damaged > 0)
          io.err(`${done.damaged} values are damaged, could not be opened before either, and stay.`);
        io.out("Backups from before open with the former key only. Try: make a new one now.");
      }
      return exitCode.ok;
    } finally {
      io.progress("");
      dataDir.release();
    }
  },
};

const anotherSchema =
  "The database is not of this release. Try: start and stop the server once, which upgrades it, and rotate the key then.";

const onPostgres =
  "The data is in PostgreSQL, where each server would need the new key before anything is sealed with it; that is not built. " +
  "Try: if the key is lost to others, replace what is sealed: API keys, signing keys and secrets can all be rotated one by one.";
