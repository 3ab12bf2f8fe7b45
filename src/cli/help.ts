import { loadConfig } from "../config.ts";
import { UsageError } from "../domain/errors.ts";
import { namesOf } from "../given-settings.ts";
import { nearest } from "../lib/nearest.ts";
import type { Setting } from "../setting-forms.ts";
import { clientSettings, settings } from "../settings.ts";
import { version } from "../version.ts";
import { spell, spellFlag } from "./arguments.ts";
import type { Command } from "./command.ts";
import { exitCode, type Io } from "./io.ts";
import { createStyle, type Style } from "./style.ts";

/** Help on every command and setting, generated from what the parsers themselves read. */
export function createHelpCommand(all: () => readonly Command[]): Command {
  return {
    words: ["help"],
    operands: [],
    flags: [],
    restName: "COMMAND",
    summary: "Show this help, or the help of one command",
    async run({ operands }, io) {
      const style = createStyle(io);
      io.out(operands.length === 0 ? overview(all(), isSelling(io), style) : pagesFor(operands, all(), style));
      return exitCode.ok;
    },
  };
}

/** Whether a server started here sells anything. Where that cannot be determined, the help leaves nothing out. */
function isSelling({ env }: Pick<Io, "env">): boolean {
  try {
    return loadConfig(env, new Map()).payments.kind !== "off";
  } catch {
    return true;
  }
}

function overview(commands: readonly Command[], isSelling: boolean, style: Style): string {
  const shown = Object.values(settings).filter(({ sells = false }: Setting<unknown>) => isSelling || !sells);
  const width = Math.max(...commands.map((command) => usage(command).length));
  return [
    `${style.bold("Postrider")} ${version}: a multi-tenant event relay with stored history`,
    "",
    style.bold("Commands"),
    ...commands.map((command) => `  ${usage(command).padEnd(width)}  ${command.summary}`),
    "",
    style.bold("Settings"),
    "  Each is an environment variable; the common ones are also flags of `postrider serve`.",
    "  Where …_FILE stands, that variable can name a file with the value instead.",
    ...(isSelling ? [] : ["  Those of payments are shown where POSTRIDER_PAYMENTS is not off."]),
    ...shown.flatMap((setting) => ["", ...settingLines(setting, style)]),
    "",
    style.bold("Settings of listen, send, events, replay and webhooks"),
    "  The server ignores them.",
    ...Object.values(clientSettings).flatMap((setting) => ["", ...settingLines(setting, style)]),
  ].join("\n");
}

const usage = (command: Command) => [spell(command), ...(command.restName ? [`[${command.restName}]`] : [])].join(" ");

function settingLines(setting: Omit<Setting<unknown>, "parse">, style: Style): string[] {
  const { default: byDefault, doc, example } = setting;
  const names = namesOf(setting).join(", ");
  const value = byDefault === "" ? `empty by default; for example ${example}` : `default ${byDefault}`;
  return [`  ${style.bold(names)}  ${style.faint(`(${value})`)}`, ...wrap(doc, 92).map((line) => `      ${line}`)];
}

function pagesFor(words: readonly string[], commands: readonly Command[], style: Style): string {
  const found = commands.filter((command) => words.every((word, i) => command.words[i] === word));
  if (found.length > 0) return found.map((command) => page(command, style)).join("\n\n");
  const given = words.join(" ");
  const names = [
    ...new Set(commands.flatMap(({ words: [first = "", ...more] }) => [first, [first, ...more].join(" ")])),
  ];
  const meant = nearest(given, names);
  throw new UsageError(`There is no command "${given}". Try: postrider help${meant === null ? "" : ` ${meant}`}`);
}

function page(command: Command, style: Style): string {
  const flags = command.flags.map((flag) => ({ left: spellFlag(flag), lines: wrap(flag.doc, 72) }));
  const width = Math.max(0, ...flags.map(({ left }) => left.length));
  return [
    `${style.bold(usage(command))}${flags.length > 0 ? " [flags]" : ""}`,
    `  ${command.summary}.`,
    ...(command.details ? ["", ...command.details.split("\n").map((line) => `  ${line}`.trimEnd())] : []),
    ...(flags.length > 0 ? [""] : []),
    ...flags.flatMap(({ left, lines }) =>
      lines.map((line, i) => `  ${(i === 0 ? left : "").padEnd(width)}  ${line}`.trimEnd()),
    ),
  ].join("\n");
}

/** Breaks lines at spaces. */
function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    if (line !== "" && line.length + 1 + word.length > width) {
      lines.push(line);
      line = word;
    } else line = line === "" ? word : `${line} ${word}`;
  }
  return [...lines, line];
}
