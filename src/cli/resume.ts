import { loadConfig } from "../config.ts";
import { pausable } from "../domain/pauses.ts";
import { nearest } from "../lib/nearest.ts";
import { UsageError } from "./arguments.ts";
import { type Command, dataDirFlag, jsonFlag } from "./command.ts";
import { exitCode } from "./io.ts";
import { createOperatorClient } from "./operator-client.ts";

export const resumeCommand: Command = {
  words: ["resume"],
  operands: [],
  restName: "deliveries|charges",
  flags: [jsonFlag, dataDirFlag],
  summary: "Let a server deliver and charge that was started paused",
  details: `Without a word it ends both pauses. What waits is delivered oldest first. The pause
comes back with the next start while POSTRIDER_PAUSED or --paused still says so.`,
  async run({ operands, flags }, io) {
    const what = operands.length === 0 ? pausable : operands.map(known);
    const { dataDir } = loadConfig(io.env, flags);
    const answer = await createOperatorClient(dataDir).send("POST", "/operator/resume", { what });
    const { resumed, paused } = answer as { resumed: string[]; paused: string[] };
    if (flags.has("--json")) io.out(JSON.stringify({ resumed, paused }));
    else {
      for (const ended of what)
        io.out(resumed.includes(ended) ? `${title(ended)} go on.` : `${title(ended)} were not paused.`);
      for (const held of paused) io.out(`${title(held)} are still paused.`);
    }
    return exitCode.ok;
  },
};

function known(word: string): (typeof pausable)[number] {
  const found = pausable.find((what) => what === word);
  if (found) return found;
  throw new UsageError(
    `"${word}" is nothing that can be paused. Try: postrider resume ${nearest(word, pausable) ?? pausable.join(" or ")}`,
  );
}

const title = (word: string) => word.charAt(0).toUpperCase() + word.slice(1);
