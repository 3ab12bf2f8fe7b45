import { resolve } from "node:path";
import { masterKeyIsIn } from "../data-dir.ts";
import { StartupError } from "../domain/errors.ts";
import { isThere } from "../private-files.ts";

/**
 * For commands that work on the data of a server: opening another folder would turn it into a data directory.
 * @param masterKeyFile where the master key is kept; null: in the folder
 * @throws StartupError when no server has run on the folder, or this user may not know
 */
export function refuseUnused(folder: string, masterKeyFile: string | null): void {
  if (masterKeyFile === null ? masterKeyIsIn(folder) : isThere(folder)) return;
  throw new StartupError(`No server has run on ${resolve(folder)}. Try: name its data directory with --data-dir.`);
}
