import { verifyBackup } from "../../backup/verify.ts";
import { UsageError } from "../../domain/errors.ts";
import { systemClock as clock } from "../../lib/clock.ts";
import { formatBytes } from "../bytes.ts";
import { type Command, jsonFlag } from "../command.ts";
import { exitCode, signalExitCode } from "../io.ts";
import { faultsText, notOpened } from "./faults.ts";
import {
  contentsOf,
  dirFlag,
  findBackup,
  identityFlag,
  interruptible,
  pendingIn,
  readBackupConfig,
  readFormerKeyElsewhere,
  readIdentities,
  readMasterKeysElsewhere,
  temporaryFolder,
  usualPlace,
} from "./options.ts";

export const verifyCommand: Command = {
  words: ["backup", "verify"],
  operands: [],
  restName: "FROM",
  flags: [identityFlag, dirFlag, jsonFlag],
  summary: "Restore a backup to a temporary folder, and check it there",
  details: `FROM is a file, or a folder or s3://bucket/prefix whose newest backup is meant (default:
POSTRIDER_BACKUP_URL, else the current folder). Checked are its checksums, the database (pages,
references, the counts of the manifest, the figures of each account against its rows), and that
the master key opens it, or the one from before its last rotation. Exit code 0: it can be restored.`,
  async run({ operands, flags }, io) {
    const config = readBackupConfig(io.env, new Map());
    const [where = usualPlace(config), extra] = operands;
    if (extra !== undefined)
      throw new UsageError(`One backup is verified at a time. Try: postrider backup verify ${where}`);
    const { place, name, from, instead } = await findBackup(where, config);
    io.standBack();
    const { signal, given } = interruptible(io);
    try {
      const former = readFormerKeyElsewhere(config);
      const keys = readMasterKeysElsewhere(config);
      const { faults, manifest, openedWith, isEarlier } = await verifyBackup({
        source: place.read(name),
        from,
        instead,
        parent: temporaryFolder(flags),
        clock,
        identities: readIdentities(flags),
        masterKeys: former ? [...keys, former.key] : keys,
        leaveFreeBytes: config.minFreeDiskBytes,
        signal,
        onProgress: ({ done, total }) => io.progress(`Restoring: ${formatBytes(done)} of ${formatBytes(total)}`),
      });
      io.progress("");
      const formerKeyFile = former && openedWith === former.key ? former.file : null;
      if (flags.has("--json")) {
        const masterKeyOpens = openedWith !== null;
        const verified = faults.length === 0;
        io.out(JSON.stringify({ backup: from, verified, faults, masterKeyOpens, formerKeyFile, manifest }));
        return faults.length === 0 ? exitCode.ok : exitCode.failed;
      }
      if (faults.length > 0) {
        io.out(
          notOpened(from, { faults, manifest }, config.masterKeyFile, former !== null) ??
            faultsText(from, faults, instead),
        );
        return exitCode.failed;
      }
      io.out(`${from} is whole: of ${manifest.createdAt}, with ${contentsOf(manifest)}, ${pendingIn(manifest)}.`);
      if (isEarlier) io.out("Its database is that of an earlier release: the first start upgrades it.");
      if (formerKeyFile !== null) {
        io.out(
          `It opens with the key from before the last rotation: to restore it, set POSTRIDER_MASTER_KEY_FILE=${formerKeyFile}.`,
        );
      }
      if (openedWith === null)
        io.out("The master key is not in it, so it was not tried: set POSTRIDER_MASTER_KEY_FILE to try it.");
      return exitCode.ok;
    } catch (error) {
      if (!signal.aborted) throw error;
      return signalExitCode[given()];
    } finally {
      io.progress("");
    }
  },
};
