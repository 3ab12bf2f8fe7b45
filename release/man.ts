import { spell, spellFlag } from "../src/cli/arguments.ts";
import type { Command } from "../src/cli/command.ts";
import { namesOf } from "../src/given-settings.ts";
import type { Setting } from "../src/setting-forms.ts";
import { clientSettings, settings } from "../src/settings.ts";
import { version } from "../src/version.ts";

/**
 * The manual page, from what `postrider help` itself is made of, in the macros of man(7), which every `man` has.
 * @param date of the page, as 2026-11-23; empty if it is unknown
 */
export function writeManual(commands: readonly Command[], date: string): string {
  return `${[
    `.TH POSTRIDER 1 "${date}" "Postrider ${version}" "Postrider"`,
    ".SH NAME",
    "postrider \\- multi\\-tenant webhook relay with stored history",
    ".SH SYNOPSIS",
    ".B postrider",
    ".RI [ command ]",
    ".RI [ operands ]",
    ".RI [ flags ]",
    ".SH DESCRIPTION",
    "Accepts events over HTTP, stores them on disk before it answers, and delivers them to webhooks: signed, retried, at",
    "least once.",
    "Without a command it runs the server.",
    ".SH COMMANDS",
    ...commands.flatMap(commandLines),
    ".SH SETTINGS",
    "Each is an environment variable; the common ones are also flags of",
    `.BR "postrider serve" .`,
    ...Object.values(settings).flatMap(settingLines),
    ".SH SETTINGS OF LISTEN, SEND, EVENTS, REPLAY AND WEBHOOKS",
    "The server ignores them.",
    ...Object.values(clientSettings).flatMap(settingLines),
    ".SH EXIT STATUS",
    ...exits.flatMap(([code, meaning]) => [".TP", `.B ${code}`, text(meaning)]),
  ].join("\n")}\n`;
}

const exits: readonly (readonly [string, string])[] = [
  ["0", "Done."],
  ["1", "Something that you can mend; the line on standard error says how."],
  ["2", "A mistake on the command line, such as an unknown flag or a value that is not valid."],
  ["70", "A defect of the program; nothing accepted is lost."],
];

function commandLines(command: Command): string[] {
  const { restName, summary, details, flags } = command;
  const usage = [spell(command), ...(restName ? [`[${restName}]`] : []), ...(flags.length > 0 ? ["[flags]"] : [])];
  return [
    `.SS ${text(usage.join(" "))}`,
    text(`${summary}.`),
    ...(details === undefined ? [] : [".PP", ".nf", ...details.split("\n").map(text), ".fi"]),
    ...flags.flatMap((flag) => [".TP", `.B ${text(spellFlag(flag))}`, text(flag.doc)]),
  ];
}

function settingLines(setting: Omit<Setting<unknown>, "parse">): string[] {
  const { default: byDefault, doc, example } = setting;
  const value = byDefault === "" ? `Empty by default; for example ${example}.` : `Default: ${byDefault}.`;
  return [".TP", `.B ${text(namesOf(setting).join(", "))}`, text(doc), text(value)];
}

/** As it reads: no word is taken for a request or an escape, and dashes stay what can be typed. */
const text = (plain: string) =>
  plain
    .replaceAll("\\", "\\e")
    .replaceAll("-", "\\-")
    .replaceAll("…", "\\[u2026]")
    .replaceAll("`", "")
    .replace(/^([.'])/, "\\&$1");
