import { newIdentity } from "../../backup/encryption.ts";
import { locate } from "../../backup/locate.ts";
import { makeBackup } from "../../backup/make.ts";
import { backupName } from "../../backup/place.ts";
import { verifyBackup } from "../../backup/verify.ts";
import { secretsBetween, secretsIn } from "../../data-dir-copy.ts";
import { StartupError, UsageError } from "../../domain/errors.ts";
import { systemClock as clock } from "../../lib/clock.ts";
import { formatDuration } from "../../lib/duration.ts";
import { messageOf } from "../../lib/error-message.ts";
import { nearest } from "../../lib/nearest.ts";
import { formatBytes } from "../bytes.ts";
import { type Command, dataDirFlag, jsonFlag } from "../command.ts";
import { exitCode, signalExitCode } from "../io.ts";
import { faultsText } from "./faults.ts";
import {
  contentsOf,
  dirFlag,
  interruptible,
  isUsualPlace,
  pendingIn,
  readBackupConfig,
  readMasterKeysElsewhere,
  temporaryFolder,
  usualPlace,
} from "./options.ts";
import { tellServer } from "./tell-server.ts";

export const backupCommand: Command = {
  words: ["backup"],
  operands: [],
  restName: "TO",
  flags: [
    { name: "--verify", doc: "Read it back, restore it to a temporary folder and check its contents." },
    dirFlag,
    dataDirFlag,
    jsonFlag,
  ],
  summary: "Back up the data directory, while the server runs or not",
  details: `TO is a folder, a file with an extension or s3://bucket/prefix, with AWS_ACCESS_KEY_ID,
AWS_SECRET_ACCESS_KEY, AWS_REGION and AWS_ENDPOINT_URL_S3 (default: POSTRIDER_BACKUP_URL,
else the current folder). The backup is one archive (tar, zstd) with the database as it is
at one moment, the secrets and a manifest. Whoever has it can read everything, unless
POSTRIDER_BACKUP_AGE_RECIPIENT encrypts it. A master key that POSTRIDER_MASTER_KEY_FILE
names is not in it.`,
  async run({ operands, flags }, io) {
    const config = readBackupConfig(io.env, flags);
    const [to = usualPlace(config), extra] = operands;
    if (extra !== undefined) throw tooMany(to, extra);
    if (config.databaseUrl !== null) throw new StartupError(onPostgres);
    const { dataDir, masterKeyFile } = config;
    const now = clock.now();
    const surroundings = { s3: config.s3, staging: dataDir, leaveFreeBytes: config.minFreeDiskBytes };
    const { place, name } = locate(to, surroundings);
    const file = name ?? backupName(now, config.backupRecipients.length > 0);
    const hasMasterKey = masterKeyFile === null;
    io.standBack();
    const { signal, given } = interruptible(io);
    const startedAt = clock.monotonicMs();
    const own = await newIdentityFor(config.backupRecipients);
    let made: string | null = null;
    try {
      const { manifest, bytes } = await makeBackup({
        dataDir,
        place,
        name: file,
        readSecrets: () => secretsIn(dataDir, !hasMasterKey),
        secretsBetween,
        hasMasterKey,
        recipients: own.recipients,
        leaveFreeBytes: config.minFreeDiskBytes,
        now,
        clock,
        signal,
        onProgress: ({ done, total }) => io.progress(`Backing up: ${formatBytes(done)} of ${formatBytes(total)}`),
      });
      io.progress("");
      const tookMs = Math.round(clock.monotonicMs() - startedAt);
      const backup = `${place.name.replace(/\/$/, "")}/${file}`;
      made = backup;
      const verify = async () => {
        const { faults } = await verifyBackup({
          source: place.read(file),
          from: backup,
          parent: temporaryFolder(flags),
          clock,
          identities: own.identities,
          masterKeys: readMasterKeysElsewhere(config),
          leaveFreeBytes: config.minFreeDiskBytes,
          signal,
          onProgress: ({ done, total }) => io.progress(`Verifying: ${formatBytes(done)} of ${formatBytes(total)}`),
        });
        return faults;
      };
      const asJson = (faults: readonly string[] | null, error?: string) => {
        const verified = faults === null ? null : faults.length === 0;
        io.out(JSON.stringify({ backup, bytes, tookMs, verified, faults: faults ?? [], error, manifest }));
      };
      const faults = flags.has("--verify")
        ? await verify().catch((cause: unknown) => {
            const error = notVerified(backup, cause);
            // Whoever makes room for newer backups has to know that this one is there.
            if (flags.has("--json") && !signal.aborted) asJson(null, messageOf(error));
            throw error;
          })
        : null;
      io.progress("");
      if (isUsualPlace(to, { place, name }, config, surroundings)) {
        await tellServer(dataDir, { name: file, at: now, tookMs, bytes, faults }).catch((error: unknown) =>
          io.err(`The server does not count this backup: ${messageOf(error)}`),
        );
      }
      if (flags.has("--json")) asJson(faults);
      else {
        io.out(
          `${backup}: ${formatBytes(bytes)}, ${contentsOf(manifest)}, ${pendingIn(manifest)}; ` +
            `it took ${formatDuration(tookMs)}.`,
        );
        if (!hasMasterKey) io.out(`The master key is not in it: keep ${masterKeyFile} apart from it, and safe.`);
        if (faults !== null)
          io.out(faults.length === 0 ? "It was read back and verified." : faultsText(backup, faults));
      }
      return faults === null || faults.length === 0 ? exitCode.ok : exitCode.failed;
    } catch (error) {
      if (!signal.aborted) throw error;
      io.err(
        made === null
          ? "The backup was stopped. Nothing was kept."
          : `${made} was made, but not verified: the verification was stopped.`,
      );
      return signalExitCode[given()];
    } finally {
      io.progress("");
    }
  },
};

/** A first word that is nearly `verify` is no folder. */
const tooMany = (to: string, extra: string): UsageError =>
  nearest(to, ["verify"]) === null
    ? new UsageError(`A backup goes to one place. Try: postrider backup ${to}`)
    : new UsageError(`There is no command "backup ${to}". Try: postrider backup verify ${extra}`);

/** The backup exists all the same, and may be whole. */
const notVerified = (backup: string, cause: unknown): unknown =>
  cause instanceof StartupError
    ? new StartupError(`${backup} was made, but could not be verified: ${cause.message}`, { cause })
    : cause;

/** Who can read the backup. If it is encrypted, this process is a recipient too, because it may have to verify it. */
async function newIdentityFor(recipients: readonly string[]): Promise<{ recipients: string[]; identities: string[] }> {
  const [first] = recipients;
  if (first === undefined) return { recipients: [], identities: [] };
  const own = await newIdentity(first);
  return { recipients: [...recipients, own.recipient], identities: [own.identity] };
}

const onPostgres =
  "The data is in PostgreSQL, which has backups of its own. Try: pg_dump --format=custom " +
  '--file=postrider.dump "$POSTRIDER_DATABASE_URL", and keep the master-key of the data directory with it.';
