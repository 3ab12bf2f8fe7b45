import { StartupError } from "../errors.ts";
import { parseArguments, UsageError } from "./arguments.ts";
import { checkUrlCommand } from "./check-url.ts";
import type { Command } from "./command.ts";
import { demoCommand } from "./demo/demo.ts";
import { createHelpCommand } from "./help.ts";
import { exitCode, type Io } from "./io.ts";
import { listenCommand } from "./listen/listen.ts";
import { crashCommand } from "./selftest/crash.ts";
import { diskFullCommand } from "./selftest/disk-full.ts";
import { sendCommand } from "./send/send.ts";
import { serveCommand } from "./serve.ts";
import { tenantCommands } from "./tenant.ts";
import { versionCommand } from "./version.ts";

/** In the order of the help. */
const commands: readonly Command[] = [
  serveCommand,
  demoCommand,
  listenCommand,
  sendCommand,
  ...tenantCommands,
  checkUrlCommand,
  crashCommand,
  diskFullCommand,
  versionCommand,
  createHelpCommand(() => commands),
];

/** Runs one command line, without the program's name. What the operator can mend is one line on standard error. */
export async function runCommand(argv: readonly string[], io: Io): Promise<number> {
  try {
    const { form, operands, flags } = parseArguments(translate(argv), commands);
    return await form.run({ operands, flags }, io);
  } catch (error) {
    if (!(error instanceof UsageError || error instanceof StartupError)) throw error;
    io.err(`postrider: ${error.message}`);
    return error instanceof UsageError ? exitCode.usage : exitCode.failed;
  }
}

/** What every program understands: `--version`, `--help`, and `--help` behind a command. */
function translate(argv: readonly string[]): readonly string[] {
  const isHelp = (word: string) => word === "--help" || word === "-h";
  if (argv[0] === "--version" || argv[0] === "-v") return ["version"];
  const end = argv.indexOf("--");
  const own = end === -1 ? argv : argv.slice(0, end);
  if (!own.some(isHelp)) return argv;
  if (argv[0]?.startsWith("-")) return isHelp(argv[0]) ? ["help"] : ["help", "serve"];
  const words = own.slice(0, own.findIndex(isHelp));
  const form = commands.find((command) => command.words.every((word, i) => word === words[i]));
  return ["help", ...(form?.words ?? words.filter((word) => !word.startsWith("-")))];
}
