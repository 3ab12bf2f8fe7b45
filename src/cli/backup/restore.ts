import { databaseEntry } from "../../backup/archive.ts";
import { unpack } from "../../backup/unpack.ts";
import { enterEmptyDir } from "../../data-dir-copy.ts";
import { StartupError, UsageError } from "../../domain/errors.ts";
import { pausable } from "../../domain/pauses.ts";
import { formatBytes } from "../bytes.ts";
import { type Command, dataDirFlag, jsonFlag } from "../command.ts";
import { exitCode, signalExitCode } from "../io.ts";
import { notOpened } from "./faults.ts";
import {
  contentsOf,
  findBackup,
  identityFlag,
  interruptible,
  pendingIn,
  readBackupConfig,
  readIdentities,
  readMasterKeysElsewhere,
} from "./options.ts";

const ways = ["resume", "hold", "fail"] as const;

export const restoreCommand: Command = {
  words: ["restore"],
  operands: ["FROM"],
  flags: [
    { ...dataDirFlag, doc: "Empty or new folder to restore to (POSTRIDER_DATA_DIR)." },
    {
      name: "--pending",
      value: "WAY",
      choices: ways,
      doc: "What becomes of pending deliveries: resume (default), hold or fail.",
    },
    identityFlag,
    jsonFlag,
  ],
  summary: "Restore a backup to an empty data directory",
  details: `FROM is a file, or a folder or s3://bucket/prefix whose newest backup is meant. It is
verified before anything is put in place. Deliveries that were pending when it was made are made
again, even if the old server made them since: at least once. With --pending hold the
server starts paused, until postrider resume. With --pending fail they fail as it starts
(server_restored) and can be replayed one by one or in bulk; what comes later is delivered.`,
  async run({ operands, flags }, io) {
    const way = ways.find((known) => known === (flags.get("--pending") ?? ways[0]));
    if (way === undefined) throw new UsageError(`--pending must be one of ${ways.join(", ")}. Try: --pending hold`);
    const config = readBackupConfig(io.env, flags);
    const { place, name, from, instead } = await findBackup(operands[0] ?? "", config);
    const identities = readIdentities(flags);
    const masterKeys = readMasterKeysElsewhere(config);
    const { signal, given } = interruptible(io);
    const folder = enterEmptyDir(config.dataDir);
    try {
      const { faults, manifest, secrets, isEarlier } = await unpack({
        source: place.read(name),
        from,
        instead,
        folder: folder.workshop,
        identities,
        masterKeys,
        leaveFreeBytes: 0,
        signal,
        onProgress: ({ done, total }) => io.progress(`Restoring: ${formatBytes(done)} of ${formatBytes(total)}`),
      });
      io.progress("");
      if (faults.length > 0) {
        throw new StartupError(
          notOpened(from, { faults, manifest }, config.masterKeyFile, false) ??
            `${from} cannot be relied on: ${faults.join("; ")}. Try: ${instead}; nothing was restored.`,
        );
      }
      folder.finish([...secrets, databaseEntry], {
        held: way === "hold" ? pausable : [],
        failsPending: way === "fail",
      });
      const { pending } = manifest.books;
      if (flags.has("--json")) {
        io.out(JSON.stringify({ restored: true, backup: from, dataDir: folder.path, pending, way, manifest }));
        return exitCode.ok;
      }
      io.out(`${folder.path} is as the server was at ${manifest.createdAt}: ${contentsOf(manifest)}.`);
      io.out(`It has ${pendingIn(manifest)}. ${consequence(pending, way)}`);
      if (isEarlier) io.out("Its database is that of an earlier release: the first start upgrades it.");
      if (!manifest.hasMasterKey) {
        io.out("The master key was kept elsewhere: the server needs POSTRIDER_MASTER_KEY_FILE with the same key.");
      }
      io.out(`Start it with: postrider serve --data-dir ${folder.path}`);
      return exitCode.ok;
    } catch (error) {
      if (!signal.aborted) throw error;
      io.err("The restore was stopped. Nothing was restored.");
      return signalExitCode[given()];
    } finally {
      io.progress("");
      folder.release();
    }
  },
};

function consequence(pending: number, way: (typeof ways)[number]): string {
  if (way === "hold") return "Deliveries and charges wait until postrider resume.";
  if (pending === 0) return "Nothing is delivered again.";
  if (way === "fail") return "They fail when the server starts, and can then be replayed.";
  return "They are made when the server starts, again if they have been made since.";
}
