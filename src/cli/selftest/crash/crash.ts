import { tmpdir } from "node:os";
import { UsageError } from "../../../domain/errors.ts";
import { systemClock as clock } from "../../../lib/clock.ts";
import { type Command, jsonFlag } from "../../command.ts";
import { counted } from "../../count.ts";
import { readDatabaseUrl } from "../../database-url.ts";
import type { Io } from "../../io.ts";
import { conduct } from "../rig/conduct.ts";
import { dirFlag, makeFolder, readCount, readSeed, seedFlag } from "../rig/options.ts";
import type { CrashFigures } from "./figures.ts";
import { createNodesRun } from "./nodes-run.ts";
import { crashPairs, nodesPlan } from "./report.ts";
import { type CrashProgress, crashSettings, createCrashRun } from "./run.ts";

const defaultCycles = 50;
const databaseFlag = "--database-url";
const nodesFlag = "--nodes";
const defaultNodes = 4;
/** One node is always spared; with more than the maximum, each would get too little of the machine. */
const fewestNodes = 2;
const mostNodes = 16;

export const crashCommand: Command = {
  words: ["selftest", "crash"],
  operands: [],
  flags: [
    { name: "--cycles", value: "N", doc: `How many times to kill the server (default ${defaultCycles}).` },
    { name: databaseFlag, value: "URL", doc: "Test several servers on this PostgreSQL database, which must be empty." },
    {
      name: nodesFlag,
      value: "N",
      doc: `How many servers share the database, ${fewestNodes} to ${mostNodes} (default ${defaultNodes}).`,
    },
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
failed; the folder is kept, and the seed reproduces the timing of the kills and the traffic.

With --database-url several servers share that database, and some of them are killed or
stand still for up to 25 s, while clients go on with the others: those must take over
within 25 s, and attempt nothing that another server is attempting. Ten cycles take about
a minute. What the test has stored stays in the database.`,
  async run({ flags }, io) {
    const cycles = readCount(flags, "--cycles", defaultCycles);
    const seed = readSeed(flags);
    const url = readDatabaseUrl(flags, databaseFlag);
    const nodes = readCount(flags, nodesFlag, defaultNodes);
    if (url === undefined && flags.has(nodesFlag)) {
      throw new UsageError(`${nodesFlag} needs a database that they share. Try: ${databaseFlag} postgres://…`);
    }
    if (nodes < fewestNodes || nodes > mostNodes) {
      throw new UsageError(
        `${nodesFlag} must be from ${fewestNodes} to ${mostNodes}. Try: ${nodesFlag} ${defaultNodes}`,
      );
    }
    const folder = makeFolder(flags.get(dirFlag.name) ?? tmpdir());
    const asJson = flags.has(jsonFlag.name);
    const onProgress = showProgress(cycles, io);
    const command = `postrider selftest crash --cycles ${cycles} --seed ${seed}`;
    if (url !== undefined) {
      const database = { url, mishaps: null };
      const trial = createNodesRun({ nodes, database, cycles, seed, folder, clock, onProgress });
      const again = `${command} --nodes ${nodes} ${databaseFlag} …`;
      return conduct(nodesPlan({ cycles, seed, folder, command: again, trial }), io, asJson);
    }
    const plan = {
      title: "Crash test",
      command,
      seed,
      folder,
      trial: createCrashRun({ cycles, seed, dataDir: folder, clock, onProgress }),
      settings: crashSettings,
      verdict: ({ acknowledged }: CrashFigures) =>
        `Nothing was lost: ${counted(acknowledged, "acknowledged event")}, ${counted(cycles, "kill")}.`,
      pairs: crashPairs,
    };
    return conduct(plan, io, asJson);
  },
};

export const showProgress =
  (cycles: number, io: Io) =>
  ({ cycles: done, acknowledged, delivered, faults }: CrashProgress): void =>
    io.progress(
      `cycle ${done} of ${cycles}, ${counted(acknowledged, "event")} acknowledged, ` +
        `${counted(delivered, "delivery", "deliveries")}, ${counted(faults, "fault")}`,
    );
