import { tmpdir } from "node:os";
import { systemClock as clock } from "../../../lib/clock.ts";
import { formatDuration } from "../../../lib/duration.ts";
import { type Command, jsonFlag } from "../../command.ts";
import { count, counted } from "../../count.ts";
import type { Io } from "../../io.ts";
import { conduct } from "../rig/conduct.ts";
import { percentile } from "../rig/machine.ts";
import { dirFlag, makeFolder, readCount, readSeed, seedFlag } from "../rig/options.ts";
import type { Pair } from "../rig/report.ts";
import { createRestoreRun, type RestoreFigures, restoreSettings } from "./run.ts";

const defaultCycles = 20;

export const restoreTestCommand: Command = {
  words: ["selftest", "restore"],
  operands: [],
  flags: [
    { name: "--cycles", value: "N", doc: `How many backups to make and restore (default ${defaultCycles}).` },
    seedFlag,
    { ...dirFlag, doc: "Where to create the temporary folder (default: the system's temporary directory)." },
    jsonFlag,
  ],
  summary: "Back up a busy server, kill it, restore it elsewhere, and compare the books",
  details: `Starts this program as a server with clients that send events and webhooks that receive
them, makes a backup at a random moment, kills the server with SIGKILL (half of the time while
the backup is being made), restores the backup to another folder and starts a server there.
Every event that was acknowledged before the backup began must be there and end in the one
state that its webhook's answers mean. Exit code 0: every check passed. 1: a check failed;
the folder is kept.`,
  async run({ flags }, io) {
    const cycles = readCount(flags, "--cycles", defaultCycles);
    const seed = readSeed(flags);
    const folder = makeFolder(flags.get(dirFlag.name) ?? tmpdir());
    const plan = {
      title: "Restore test",
      command: `postrider selftest restore --cycles ${cycles} --seed ${seed}`,
      seed,
      folder,
      trial: createRestoreRun({ cycles, seed, folder, clock, onProgress: showProgress(cycles, io) }),
      settings: restoreSettings,
      verdict: ({ owed }: RestoreFigures) =>
        `Nothing was lost: ${counted(owed, "event")} acknowledged before ${counted(cycles, "backup")}.`,
      pairs: restorePairs,
    };
    return conduct(plan, io, flags.has(jsonFlag.name));
  },
};

const showProgress =
  (total: number, io: Io) =>
  ({ cycles, owed, restored }: RestoreFigures): void =>
    io.progress(`backup ${cycles} of ${total}, ${counted(restored, "event")} restored, ${count(owed)} of them owed`);

const restorePairs = (figures: RestoreFigures): Pair[] => [
  [
    "Backups",
    `${count(figures.cycles)} under load, in ${formatDuration(percentile(figures.backupMs, 50))} (p50), ` +
      `${count(Math.round(figures.backupBytes / 1024))} KiB in all; ${counted(figures.killedDuring, "server")} killed meanwhile`,
  ],
  [
    "Events",
    `${count(figures.acknowledged)} acknowledged, ${count(figures.owed)} of them before a backup began; ` +
      `${count(figures.restored)} restored with ${count(figures.records)} records`,
  ],
  [
    "Deliveries",
    `${count(figures.pending)} were pending in the backups; ${count(figures.verifiedSignatures)} arrived with a valid ` +
      `signature, ${count(figures.duplicates)} of them again after a restore`,
  ],
  ["Restores", `verified and in place after ${formatDuration(percentile(figures.restoreMs, 50))} (p50)`],
];
