import { StartupError, UsageError } from "../domain/errors.ts";
import { parseArguments } from "./arguments.ts";
import type { Command } from "./command.ts";
import { Interrupted } from "./interrupted.ts";
import { exitCode, type Io, signalExitCode } from "./io.ts";
import { loadCommands } from "./load-commands.ts";

/**
 * Runs one command line, without the program's name. Errors the operator can fix are one line on standard error; whoever
 * answers a question with Ctrl+C needs none.
 */
export async function runCommand(argv: readonly string[], io: Io): Promise<number> {
  try {
    const commands = await loadCommands(firstWord(argv));
    const { form, operands, flags } = parseArguments(translate(argv, commands), commands);
    return await form.run({ operands, flags }, io);
  } catch (error) {
    if (error instanceof Interrupted) return signalExitCode[error.by];
    if (!(error instanceof StartupError)) throw error;
    io.err(`postrider: ${error.message}`);
    return error instanceof UsageError ? exitCode.usage : exitCode.failed;
  }
}

/** The word that names the command, `serve` where there is none; null: help is wanted, which knows them all. */
function firstWord(argv: readonly string[]): string | null {
  if (startsServer(argv)) return "serve";
  return argv.some((word) => isHelp(word) || isVersion(word)) ? null : (argv[0] ?? null);
}

const isHelp = (word: string) => word === "--help" || word === "-h";
const isVersion = (word: string) => word === "--version" || word === "-v";

/** Whether the command line runs a server, not a command that comes to an end. */
export const startsServer = (argv: readonly string[]): boolean =>
  (argv[0] === undefined || argv[0] === "serve" || argv[0].startsWith("-")) &&
  !argv.some((word) => isHelp(word) || isVersion(word));

/** What every program understands: `--version`, `--help`, and `--help` after a command. */
function translate(argv: readonly string[], commands: readonly Command[]): readonly string[] {
  if (isVersion(argv[0] ?? "")) return ["version"];
  const end = argv.indexOf("--");
  const own = end === -1 ? argv : argv.slice(0, end);
  if (!own.some(isHelp)) return argv;
  if (argv[0]?.startsWith("-")) return isHelp(argv[0]) ? ["help"] : ["help", "serve"];
  const words = own.slice(0, own.findIndex(isHelp));
  const form = commands.find((command) => command.words.every((word, i) => word === words[i]));
  return ["help", ...(form?.words ?? words.filter((word) => !word.startsWith("-")))];
}
