import { readValues } from "../config.ts";
import { UsageError } from "../domain/errors.ts";
import { pausable } from "../domain/pauses.ts";
import { nearest } from "../lib/nearest.ts";
import { type Command, dataDirFlag, jsonFlag } from "./command.ts";
import { exitCode } from "./io.ts";
import { createOperatorClient } from "./operator-client.ts";

export const resumeCommand: Command = {
  words: ["resume"],
  operands: [],
  restName: "deliveries|charges",
  flags: [jsonFlag, dataDirFlag],
  summary: "Resume deliveries and charges on a server that was started paused",
  details: `Without arguments it resumes both. Waiting deliveries go out oldest first. The pause
returns at the next start if POSTRIDER_PAUSED or --paused is still set.`,
  async run({ operands, flags }, io) {
    const what = operands.length === 0 ? pausable : operands.map(known);
    const { dataDir } = readValues(io.env, flags);
    const answer = await createOperatorClient(dataDir).send("POST", "/operator/resume", { what });
    const { resumed, paused } = answer as { resumed: string[]; paused: string[] };
    if (flags.has("--json")) io.out(JSON.stringify({ resumed, paused }));
    else {
      for (const ended of what)
        io.out(resumed.includes(ended) ? `${title(ended)} have resumed.` : `${title(ended)} were not paused.`);
      for (const held of paused) io.out(`${title(held)} are still paused.`);
    }
    return exitCode.ok;
  },
};

function known(word: string): (typeof pausable)[number] {
  const found = pausable.find((what) => what === word);
  if (found) return found;
  throw new UsageError(
    `"${word}" cannot be resumed. Try: postrider resume ${nearest(word, pausable) ?? pausable.join(" or ")}`,
  );
}

const title = (word: string) => word.charAt(0).toUpperCase() + word.slice(1);
