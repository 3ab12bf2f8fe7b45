import { commit, committedAt, version } from "../version.ts";
import { type Command, jsonFlag } from "./command.ts";
import { exitCode } from "./io.ts";

export const versionCommand: Command = {
  words: ["version"],
  operands: [],
  flags: [jsonFlag],
  summary: "Print the version, and the commit that it was built from",
  async run({ flags }, io) {
    const { platform, arch } = process;
    if (flags.has("--json")) io.out(JSON.stringify({ version, commit, committedAt, bun: Bun.version, platform, arch }));
    else {
      const origin = commit === "unknown" ? "" : `commit ${commit} of ${committedAt.slice(0, 10)}, `;
      io.out(`postrider ${version} (${origin}Bun ${Bun.version}, ${platform} ${arch})`);
    }
    return exitCode.ok;
  },
};
