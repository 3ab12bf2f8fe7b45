import { mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { StartupError } from "../domain/errors.ts";
import { messageOf } from "../lib/error-message.ts";
import { type Unpacked, type UnpackOptions, unpack } from "./unpack.ts";

export interface VerifyOptions extends Omit<UnpackOptions, "folder"> {
  /** Where the temporary folder is made; as much room as the database takes is needed there. */
  parent: string;
}

const prefix = "postrider-verify-";
const staleMs = 24 * 60 * 60_000;

/** Restores a backup into a temporary folder, and checks it there. @throws StartupError as `unpack` */
export async function verifyBackup({ parent, ...options }: VerifyOptions): Promise<Unpacked> {
  let folder: string;
  try {
    folder = mkdtempSync(join(parent, prefix));
    removeStale(parent, folder);
  } catch (error) {
    throw new StartupError(`No folder can be made in ${parent} (${messageOf(error)}). Try: another one, with --dir.`);
  }
  try {
    return await unpack({ ...options, folder });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** What is left of a process that was killed: older by a day than ours, by the disk's own time. */
function removeStale(parent: string, own: string): void {
  const madeAt = (folder: string) => statSync(folder, { throwIfNoEntry: false })?.mtimeMs ?? Number.POSITIVE_INFINITY;
  for (const name of readdirSync(parent).filter((name) => name.startsWith(prefix))) {
    const folder = join(parent, name);
    if (madeAt(own) - madeAt(folder) > staleMs) rmSync(folder, { recursive: true, force: true });
  }
}
