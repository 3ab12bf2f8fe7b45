import { tmpdir } from "node:os";
import { systemClock as clock } from "../../../lib/clock.ts";
import { type Command, jsonFlag } from "../../command.ts";
import type { Io } from "../../io.ts";
import { conduct } from "../rig/conduct.ts";
import { dirFlag, makeFolder, readCount, readSeed, seedFlag } from "../rig/options.ts";
import { counted } from "../rig/report.ts";
import type { CrashFigures } from "./figures.ts";
import { crashPairs } from "./report.ts";
import { type CrashProgress, crashSettings, createCrashRun } from "./run.ts";

const defaultCycles = 50;

export const crashCommand: Command = {
  words: ["selftest", "crash"],
  operands: [],
  flags: [
    { name: "--cycles", value: "N", doc: `How many times to kill the server (default ${defaultCycles}).` },
    seedFlag,
    { ...dirFlag, doc: "Where to create the temporary folder (default: the system's temporary directory)." },
    jsonFlag,
  ],
  summary: "Kill the server repeatedly, and prove that it loses nothing",
  details: `Starts this program as a server in a temporary folder, with clients that send events, webhooks
that receive them and replays in progress; kills it with SIGKILL at random moments and
restarts it on the same folder. In the end every acknowledged event must be stored and
delivered, byte for byte and with a valid signature, and nothing else may be. Nothing leaves
the machine, and your settings are not read. Exit code 0: every check passed. 1: a check
failed; the folder is kept, and the seed reproduces the timing of the kills and the traffic.`,
  async run({ flags }, io) {
    const cycles = readCount(flags, "--cycles", defaultCycles);
    const seed = readSeed(flags);
    const folder = makeFolder(flags.get(dirFlag.name) ?? tmpdir());
    const plan = {
      title: "Crash test",
      command: `postrider selftest crash --cycles ${cycles} --seed ${seed}`,
      seed,
      folder,
      trial: createCrashRun({ cycles, seed, dataDir: folder, clock, onProgress: showProgress(cycles, io) }),
      settings: crashSettings,
      verdict: ({ acknowledged }: CrashFigures) =>
        `Nothing was lost: ${counted(acknowledged, "acknowledged event")}, ${counted(cycles, "kill")}.`,
      pairs: crashPairs,
    };
    return conduct(plan, io, flags.has(jsonFlag.name));
  },
};

const showProgress =
  (cycles: number, io: Io) =>
  ({ cycles: done, acknowledged, delivered, faults }: CrashProgress): void =>
    io.progress(
      `cycle ${done} of ${cycles}, ${counted(acknowledged, "event")} acknowledged, ` +
        `${counted(delivered, "delivery", "deliveries")}, ${counted(faults, "fault")}`,
    );
