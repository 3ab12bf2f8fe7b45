import { readSettings, toConfig } from "../config.ts";
import { givenMasterKey } from "../data-dir.ts";
import { type SettingInForce, settingsInForce } from "../settings-in-force.ts";
import { type Command, jsonFlag, settingFlags } from "./command.ts";
import { exitCode } from "./io.ts";
import { createStyle, type Style } from "./style.ts";
import { formatTable, plainText } from "./table.ts";

/** `postrider config`: the settings a server would use if it were started here and now. */
export const configCommand: Command = {
  words: ["config"],
  operands: [],
  flags: [jsonFlag, ...settingFlags],
  summary: "Check the settings; show what is in force and where it comes from",
  details: `Reads the environment, the files that it names and the flags as the server would. Secrets
are masked. Exit code 0: the server would start with these. 1, or 2 for a flag: it would
not, and the line on standard error is the one that the start would show.`,
  async run({ flags }, io) {
    const given = readSettings(io.env, flags, io.err);
    const config = toConfig(given, io.env, io.err);
    if (config.masterKeyFile !== null) givenMasterKey(config.masterKeyFile, io.err);
    const mode = config.localMode ? "local" : "public";
    const inForce = settingsInForce(given, config);
    const ignored = config.foreignVariables;
    if (flags.has("--json")) io.out(JSON.stringify({ mode, settings: inForce, ignored }));
    else io.out(forPeople(mode, inForce, ignored, createStyle(io)));
    return exitCode.ok;
  },
};

function forPeople(mode: string, inForce: readonly SettingInForce[], ignored: readonly string[], style: Style): string {
  const rows = inForce.map((one) => [one.setting, plainText(one.value ?? "–"), plainText(originOf(one))]);
  const isByDefault = new Set(inForce.filter(({ source }) => source === "default").map(({ setting }) => setting));
  const mark = (cell: string, column: number) => (column === 0 && !isByDefault.has(cell) ? style.bold(cell) : cell);
  const lines = [
    formatTable(["setting", "in force", "from"], rows, style, mark),
    "",
    `The server would run in ${mode} mode.`,
  ];
  if (ignored.length > 0) {
    lines.push(`Ignored, because a container platform has set them: ${ignored.map(plainText).join(", ")}.`);
  }
  return lines.join("\n");
}

function originOf({ source, by, file, note }: SettingInForce): string {
  const origin = {
    default: "default",
    environment: "environment",
    file: `file ${file}`,
    flag: `flag ${by}`,
  }[source];
  return note === null ? origin : `${origin} (${note})`;
}
