import { join, resolve } from "node:path";
import { readValues } from "../config.ts";
import { readOperatorTokenIn, rotateOperatorTokenIn } from "../data-dir.ts";
import { operatorTokenFile } from "../secrets.ts";
import { type Command, dataDirFlag, jsonFlag } from "./command.ts";
import { exitCode } from "./io.ts";
import { createOperatorClient, runningServer } from "./operator-client.ts";

/** `postrider operator token`: reads the data directory, whether or not a server runs on it. */
export const tokenCommand: Command = {
  words: ["operator", "token"],
  operands: [],
  flags: [jsonFlag, dataDirFlag],
  summary: "Print the operator token",
  details: `It signs in at /operator in a browser, and opens /metrics in public mode.
Nothing else is printed, so it can be piped. A file that others can read is
refused.`,
  async run({ flags }, io) {
    const { dataDir } = readValues(io.env, flags);
    const token = readOperatorTokenIn(dataDir, (message) => io.err(`Warning: ${message}`));
    io.out(flags.has("--json") ? JSON.stringify({ token, file: fileIn(dataDir) }) : token);
    return exitCode.ok;
  },
};

/** `postrider operator rotate-token`: goes through the running server, so that it stops accepting the old one immediately. */
export const rotateTokenCommand: Command = {
  words: ["operator", "rotate-token"],
  operands: [],
  flags: [jsonFlag, dataDirFlag],
  summary: "Replace the operator token; the old one stops working",
  details: `A running server stops accepting the old token at once. The new one is written to the data
directory and not printed, because terminals and job logs keep what they show:
postrider operator token does. Where several servers share a database, each has its
token in its own data directory, and the others go on taking the old one: repeat the
command on each of them.`,
  async run({ flags }, io) {
    const { dataDir, databaseUrl } = readValues(io.env, flags);
    const isRunning = runningServer(dataDir) !== null;
    if (isRunning) await createOperatorClient(dataDir).send("POST", "/operator/token/rotate");
    else rotateOperatorTokenIn(dataDir);
    const isShared = databaseUrl !== null || (isRunning && (await sharesDatabase(dataDir)));
    const file = fileIn(dataDir);
    io.out(
      flags.has("--json")
        ? JSON.stringify({ rotated: true, file, running: isRunning })
        : `The operator token has been replaced; the old one no longer works${isShared ? " on this server" : ""}.\n` +
            `The new one is in ${file}.`,
    );
    if (isShared) io.err(othersKeepTheirs);
    return exitCode.ok;
  },
};

/** False also when the server cannot say. */
async function sharesDatabase(dataDir: string): Promise<boolean> {
  try {
    const { shared } = (await createOperatorClient(dataDir).send("GET", "/operator/nodes")) as { shared: boolean };
    return shared;
  } catch {
    return false;
  }
}

const othersKeepTheirs =
  "Other servers of the same database still take the old one. Try: postrider operator rotate-token on each of them, and copy " +
  "the file operator-token to any that you add: those take the old one from the database.";

const fileIn = (dataDir: string) => join(resolve(dataDir), operatorTokenFile);
