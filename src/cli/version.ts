import { version } from "../version.ts";
import type { Command } from "./command.ts";
import { exitCode } from "./io.ts";

export const versionCommand: Command = {
  words: ["version"],
  operands: [],
  flags: [],
  summary: "Print the version",
  async run(_args, io) {
    io.out(`postrider ${version} (Bun ${Bun.version}, ${process.platform} ${process.arch})`);
    return exitCode.ok;
  },
};
