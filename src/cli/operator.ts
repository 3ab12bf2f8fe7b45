import { join, resolve } from "node:path";
import { loadConfig } from "../config.ts";
import { operatorTokenFile, rotateOperatorTokenIn } from "../data-dir.ts";
import { type Command, dataDirFlag, jsonFlag } from "./command.ts";
import { exitCode } from "./io.ts";
import { createOperatorClient, runningServer } from "./operator-client.ts";

/** `postrider operator rotate-token`: through the running server, so that it stops to take the old one at once. */
export const rotateTokenCommand: Command = {
  words: ["operator", "rotate-token"],
  operands: [],
  flags: [jsonFlag, dataDirFlag],
  summary: "Replace the operator token; the old one is refused from then on",
  details: `A running server is told and stops to take the old token at once. The new one is written into
the data directory and is not printed, because terminals and logs of jobs keep what they show.`,
  async run({ flags }, io) {
    const { dataDir } = loadConfig(io.env, flags);
    const isRunning = runningServer(dataDir) !== null;
    if (isRunning) await createOperatorClient(dataDir).send("POST", "/operator/token/rotate");
    else rotateOperatorTokenIn(dataDir);
    const file = join(resolve(dataDir), operatorTokenFile);
    io.out(
      flags.has("--json")
        ? JSON.stringify({ rotated: true, file, running: isRunning })
        : `The operator token is a new one; the old one is refused.\nIt is in ${file}.`,
    );
    return exitCode.ok;
  },
};
