import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { StartupError } from "../domain/errors.ts";
import { messageOf } from "../lib/error-message.ts";
import { type Unpacked, type UnpackOptions, unpack } from "./unpack.ts";

export interface VerifyOptions extends Omit<UnpackOptions, "folder"> {
  /** Where the temporary folder is made; as much room as the database takes is needed there. */
  parent: string;
}

/** Restores a backup into a temporary folder, and checks it there. @throws StartupError as `unpack` */
export async function verifyBackup({ parent, ...options }: VerifyOptions): Promise<Unpacked> {
  let folder: string;
  try {
    folder = mkdtempSync(join(parent, "postrider-verify-"));
  } catch (error) {
    throw new StartupError(`No folder can be made in ${parent} (${messageOf(error)}). Try: another one, with --dir.`);
  }
  try {
    return await unpack({ ...options, folder });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
