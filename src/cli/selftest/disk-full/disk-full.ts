import { type Command, jsonFlag } from "../../command.ts";
import { counted } from "../../count.ts";
import type { Io } from "../../io.ts";
import { conduct } from "../rig/conduct.ts";
import { dirFlag, makeFolder, readCount, readSeed, requireFlag, seedFlag } from "../rig/options.ts";
import { checkSmall } from "./ballast.ts";
import { diskFullPairs } from "./report.ts";
import type { DiskFullFigures } from "./run.ts";
import { createDiskFullTrial, diskFullSettings } from "./trial.ts";

const defaultCycles = 20;

export const diskFullCommand: Command = {
  words: ["selftest", "disk-full"],
  operands: [],
  flags: [
    { ...dirFlag, doc: "Folder on a small file system, which will be filled." },
    { name: "--cycles", value: "N", doc: `How many times to fill it (default ${defaultCycles}).` },
    seedFlag,
    jsonFlag,
  ],
  summary: "Fill a small disk repeatedly, and prove that nothing is lost",
  details: `Starts this program as a server in a folder on a small file system, without its free-disk
minimum; fills the disk with events until SQLite itself runs out of space, then frees space
by deleting files of its own. While the disk is full, events must be refused with 503 and
leave nothing behind; afterwards everything must resume automatically, without duplicates.
On some full disks the server is killed or stopped, and restarted.
Exit code 0: every check passed. 1: a check failed; the folder is kept.`,
  async run({ flags }, io) {
    const cycles = readCount(flags, "--cycles", defaultCycles);
    const seed = readSeed(flags);
    const parent = requireFlag(flags, dirFlag, "/mnt/small");
    checkSmall(parent);
    const folder = makeFolder(parent);
    const plan = {
      title: "Disk-full test",
      command: `postrider selftest disk-full --dir ${parent} --cycles ${cycles} --seed ${seed}`,
      seed,
      folder,
      trial: createDiskFullTrial({ cycles, seed, folder, onProgress: showProgress(cycles, io) }),
      settings: diskFullSettings,
      verdict: ({ acknowledged }: DiskFullFigures) =>
        `Nothing was lost: ${counted(acknowledged, "acknowledged event")}, ${counted(cycles, "full disk")}.`,
      pairs: diskFullPairs,
    };
    return conduct(plan, io, flags.has(jsonFlag.name));
  },
};

const showProgress =
  (total: number, io: Io) =>
  ({ cycles, acknowledged, refusals }: DiskFullFigures): void =>
    io.progress(
      `cycle ${cycles} of ${total}, ${counted(acknowledged, "event")} acknowledged, ${counted(refusals, "refusal")}`,
    );
