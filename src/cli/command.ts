import { settings } from "../settings.ts";
import type { Arguments, CommandForm, Flag } from "./arguments.ts";
import type { Io } from "./io.ts";

export interface Command extends CommandForm {
  /** One line of the help. */
  readonly summary: string;
  /** What `postrider help <command>` adds, in lines of at most 80 characters. */
  readonly details?: string;
  /** @returns the exit code @throws StartupError with what to do */
  run(args: Pick<Arguments<CommandForm>, "operands" | "flags">, io: Io): Promise<number>;
}

/** Flags of a command that reads the whole configuration. */
export const settingFlags: readonly Flag[] = Object.values(settings).flatMap(({ flag, env, doc }) =>
  flag === undefined ? [] : [{ name: flag, value: valueName(flag), doc: `${doc} (${env})` }],
);

/** `--data-dir`, for commands that look for the running server. */
export const dataDirFlag: Flag = {
  name: "--data-dir",
  value: "DIR",
  doc: "The server's data directory (POSTRIDER_DATA_DIR).",
};

export const noSnapshotFlag: Flag = {
  name: "--no-snapshot",
  doc: "Upgrade the database of an earlier version without keeping a snapshot to go back to.",
};

export const jsonFlag: Flag = { name: "--json", doc: "Print one JSON value, for programs." };

function valueName(flag: string): string {
  return flag.slice(flag.lastIndexOf("-") + 1).toUpperCase();
}
