import { resolve } from "node:path";
import { installCleanup, removeAtEnd } from "./cleanup.ts";
import { folderOnDisk } from "./machine.ts";
import { clearProgress, say } from "./output.ts";
import { type Bar, barLine } from "./report.ts";
import { makeDataDir } from "./servers.ts";

/** One of the `bun run bench…`. */
interface BenchCommand<Options extends object> {
  /** What its errors begin with. */
  name: string;
  /** What its errors end with. */
  hint?: string;
  /** @returns the help where that is asked for */
  readOptions(args: readonly string[]): Options | string;
  /** @returns the exit code */
  run(options: Options): Promise<number>;
}

/** Ends the process: with 2 when it could not be measured. What was started and written goes with it. */
export async function runBench<Options extends object>(command: BenchCommand<Options>): Promise<never> {
  installCleanup();
  try {
    const options = command.readOptions(process.argv.slice(2));
    if (typeof options !== "string") process.exit(await command.run(options));
    process.stdout.write(options);
    process.exit(0);
  } catch (error) {
    clearProgress();
    const hint = command.hint === undefined ? "" : ` (${command.hint})`;
    process.stderr.write(`${command.name}: ${error instanceof Error ? error.message : String(error)}${hint}\n`);
    process.exit(2);
  }
}

/** For `parseArgs`, beside its own. */
export const sharedOptions = {
  "data-dir": { type: "string" },
  source: { type: "boolean", default: false },
  "no-gate": { type: "boolean", default: false },
  help: { type: "boolean", short: "h", default: false },
} as const;

/** @param keep leave it when the command ends */
export function makeFolder(parent: string | undefined, keep = false): string {
  const folder = makeDataDir(resolve(parent ?? folderOnDisk()));
  if (!keep) removeAtEnd(folder);
  return folder;
}

/** @returns the exit code */
export function sayBars(bars: readonly Bar[], gate: boolean): number {
  for (const bar of bars) say(barLine(bar));
  return gate && bars.some(({ passed }) => !passed) ? 1 : 0;
}
