import { existsSync } from "node:fs";
import { readValues } from "../config.ts";
import { openDataDir } from "../data-dir.ts";
import { StartupError } from "../domain/errors.ts";
import { type Clock, sleep, systemClock } from "../lib/clock.ts";
import { messageOf } from "../lib/error-message.ts";
import { untilAborted } from "../lib/until-aborted.ts";
import { formerKeyFileOf, keyFilesOf, makeNextKey, promoteNextKey } from "../master-key-file.ts";
import { sealedContexts } from "../sealed-contexts.ts";
import { outlivingSecrets } from "../secrets.ts";
import { rotateStoreKey, sealingOfStore, storeFits } from "../store/open.ts";
import { type Command, dataDirFlag, jsonFlag } from "./command.ts";
import { counted } from "./count.ts";
import { abortOnSignal, Interrupted } from "./interrupted.ts";
import { exitCode, type Io } from "./io.ts";
import { createOperatorClient, runningServer } from "./operator-client.ts";
import { refuseUnused } from "./unused-folder.ts";

/** `postrider rotate-key`: replaces the master key, through the running server or without one. */
export const rotateKeyCommand: Command = {
  words: ["rotate-key"],
  operands: [],
  flags: [dataDirFlag, jsonFlag],
  summary: "Replace the master key and re-encrypt everything, whether or not the server is running",
  details: `A running server encrypts with the new key from then on, and re-encrypts existing values in
the background: API keys, signing keys, secrets and the rest. It takes 20 seconds at least, and
continues at the next start if it is interrupted. Without a server (not on PostgreSQL),
everything is re-encrypted in one transaction. The new key is in master-key.next (or beside
POSTRIDER_MASTER_KEY_FILE) until it takes the place of the old one; a key that you put there
beforehand is taken. Make a backup afterwards.`,
  async run({ flags }, io) {
    const { dataDir, databaseUrl, masterKeyFile } = readValues(io.env, flags, io.err);
    const isJson = flags.has(jsonFlag.name);
    if (runningServer(dataDir) !== null) return rotateByServer(dataDir, isJson, io, systemClock);
    if (databaseUrl !== null) throw new StartupError(onPostgres);
    return rotateAlone(dataDir, masterKeyFile, isJson, io);
  },
};

interface Standing {
  readonly rotating: boolean;
  readonly resealed: number;
  readonly damaged: number;
  readonly file: string;
  readonly in_place: boolean;
}

const lookEveryMs = 250;
/** A restart takes less. */
const patienceMs = 30_000;

async function rotateByServer(dataDir: string, isJson: boolean, io: Io, clock: Clock): Promise<number> {
  const path = "/operator/master-key";
  let standing = (await createOperatorClient(dataDir).send("POST", `${path}/rotate`)) as Standing;
  let heardAt = clock.monotonicMs();
  const { signal } = abortOnSignal(io);
  try {
    while (standing.rotating) {
      io.progress(`The new key is in use. Resealing: ${standing.resealed}`);
      await untilAborted(signal, () => sleep(clock, lookEveryMs));
      try {
        standing = (await untilAborted(signal, () => createOperatorClient(dataDir).send("GET", path))) as Standing;
        heardAt = clock.monotonicMs();
      } catch (error) {
        if (error instanceof Interrupted) throw error;
        if (clock.monotonicMs() - heardAt < patienceMs) continue;
        throw new StartupError(
          `The new key is in use, but the server no longer answers (${messageOf(error)}). ` +
            "Try: start the server; it re-encrypts the rest automatically.",
        );
      }
    }
  } catch (error) {
    if (error instanceof Interrupted) io.err(goesOn);
    throw error;
  } finally {
    io.progress("");
  }
  tell(standing, isJson, io);
  if (!standing.in_place) {
    io.err(
      `The server could not put the new key into ${standing.file}. Try: put there what is in ${standing.file}.next; ` +
        "until then a start needs both.",
    );
  }
  return exitCode.ok;
}

function rotateAlone(folder: string, masterKeyFile: string | null, isJson: boolean, io: Io): number {
  refuseUnused(folder, masterKeyFile);
  // Holding its lock proves that no server runs on it.
  const dataDir = openDataDir(folder, io.err, { masterKeyFile, isShared: false });
  try {
    const { path, secrets } = dataDir;
    if (!storeFits(path)) throw new StartupError(anotherSchema);
    const files = keyFilesOf(path, masterKeyFile);
    const next = makeNextKey(files, io.err);
    if (next.equals(secrets.masterKey)) throw new StartupError(`${files.next} is the key in use. Try: remove it.`);
    const { isSealed, isUnderWay } = sealingOfStore(path, next);
    const done =
      isSealed && !isUnderWay
        ? { resealed: 0, damaged: 0 }
        : rotateStoreKey({
            dataDir: path,
            from: isSealed ? next : secrets.masterKey,
            to: next,
            contexts: sealedContexts,
            outliving: isSealed ? {} : outlivingSecrets(secrets.masterKey, false),
            onProgress: (resealed) => io.progress(`Resealing: ${resealed}`),
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
    tell({ ...done, file: files.current, in_place: true }, isJson, io);
    return exitCode.ok;
  } finally {
    io.progress("");
    dataDir.release();
  }
}

function tell({ resealed, damaged, file, in_place }: Omit<Standing, "rotating">, isJson: boolean, io: Io) {
  if (isJson) {
    io.out(JSON.stringify({ resealed, damaged }));
    return;
  }
  const place = in_place ? file : `${file}.next`;
  io.out(`The master key was replaced, and the new one is in ${place}; ${counted(resealed, "value")} resealed.`);
  if (damaged > 0) io.err(`${counted(damaged, "damaged value")} left as before: the old key did not open them either.`);
  const former = in_place ? formerKeyFileOf(file) : file;
  const whereabouts = existsSync(former) ? `, which is in ${former}` : "";
  io.out(`Earlier backups still need the old key${whereabouts}. Try: make a new backup now.`);
}

const goesOn =
  "The rotation goes on in the server, whose log has master_key.rotated once it has ended. " +
  "Until then, the same command watches it again; after that, it begins another.";

const anotherSchema =
  "The database is not of this release. Try: start and stop the server once, which upgrades it, and rotate the key then.";

const onPostgres =
  "On PostgreSQL a server that runs replaces the key, and none runs on this data directory. " +
  "Try: start the servers, and repeat this on one of them.";
