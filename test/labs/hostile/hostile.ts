import { rmSync } from "node:fs";
import { parseArgs } from "node:util";
import { installCleanup } from "../bench/cleanup.ts";
import { describeSurroundings, folderOnDisk } from "../bench/machine.ts";
import { clearProgress, say } from "../bench/output.ts";
import { machineLines } from "../bench/report.ts";
import { barLine, idleMachine, judge, loadLines, tallyLines } from "./report.ts";
import { type HostileOptions, runHostile } from "./run.ts";

/**
 * `bun run hostile --times 1000`: the whole server beside receivers that do what no receiver should. The exit code is 1
 * when something did not hold.
 */
const help = `Usage: bun run hostile [options]

  --times 20      attempts to each hostile receiver
  --warmup N      turns of the warm-up, with as many well-meant receivers (default: as many as follow, but 3 to 10)
  --source        run src/main.ts instead of dist/postrider
  --only TEXT     only receivers whose title has this text in it
  --data-dir DIR  where the temporary data folder is made
`;

installCleanup();
try {
  const { values } = parseArgs({
    options: {
      times: { type: "string", default: "20" },
      warmup: { type: "string" },
      source: { type: "boolean", default: false },
      "data-dir": { type: "string", default: folderOnDisk() },
      only: { type: "string", default: "" },
      help: { type: "boolean", short: "h", default: false },
    },
  });
  const { help: wantsHelp, times, warmup, source, only } = values;
  if (wantsHelp) say(help);
  const options = {
    times: count("times", times),
    warmupTurns: warmup === undefined ? undefined : count("warmup", warmup),
    source,
    only,
  };
  process.exit(wantsHelp ? 0 : await hostile({ ...options, parent: values["data-dir"] }));
} catch (error) {
  clearProgress();
  process.stderr.write(`hostile: ${error instanceof Error ? error.message : String(error)} (bun run hostile --help)\n`);
  process.exit(2);
}

async function hostile(options: Omit<HostileOptions, "maxLateMs">): Promise<number> {
  if (process.platform !== "linux") throw new Error("The memory of the server is read from /proc. Try: on Linux.");
  const { parent, times } = options;
  say(machineLines(await describeSurroundings(parent)));
  say("");
  const result = await runHostile({ ...options, maxLateMs: idleMachine.lateMs });
  rmSync(result.dataDir, { recursive: true, force: true });
  say(tallyLines(result));
  say("");
  say(loadLines(result));
  const bars = judge(result, times, idleMachine);
  for (const bar of bars) say(barLine(bar));
  return bars.every(({ passed }) => passed) ? 0 : 1;
}

function count(name: string, text: string): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1) throw new Error(`--${name} takes a whole number above 0, not "${text}".`);
  return value;
}
