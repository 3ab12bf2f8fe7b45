import { mkdtempSync, rmSync, statSync, truncateSync } from "node:fs";
import { join } from "node:path";
import { StartupError } from "../domain/errors.ts";
import { type Clock, sleep } from "../lib/clock.ts";
import { messageOf } from "../lib/error-message.ts";
import { databaseEntry } from "./archive.ts";
import { removeStale, verifyFolder, verifyFolders } from "./leftovers.ts";
import { createRest } from "./rest.ts";
import { type Unpacked, type UnpackOptions, unpack } from "./unpack.ts";

export interface VerifyOptions extends Omit<UnpackOptions, "folder" | "rest"> {
  /** Where the temporary folder is created; it needs as much room as the database takes. */
  parent: string;
  clock: Clock;
}

/** The share of the time left to other work: this writes as much as the whole database. */
const restShare = 0.6;

/** Space is freed in pieces, with pauses: freeing gigabytes in one go holds up the commits of a server on the same disk. */
const freedBytes = 32 * 2 ** 20;
const freedPauseMs = 10;

/** Restores a backup into a temporary folder and checks it there. @throws StartupError as `unpack` */
export async function verifyBackup({ parent, clock, ...options }: VerifyOptions): Promise<Unpacked> {
  let folder: string;
  try {
    folder = mkdtempSync(join(parent, verifyFolder()));
  } catch (error) {
    throw new StartupError(`No folder can be made in ${parent} (${messageOf(error)}). Try: another one, with --dir.`);
  }
  try {
    await removeStale(parent, folder, verifyFolders);
    const rest = createRest({ clock, signal: options.signal, share: restShare });
    return await unpack({ ...options, folder, rest });
  } finally {
    await shrink(join(folder, databaseEntry), clock);
    rmSync(folder, { recursive: true, force: true });
  }
}

async function shrink(path: string, clock: Clock): Promise<void> {
  let bytes = statSync(path, { throwIfNoEntry: false })?.size ?? 0;
  while (bytes > freedBytes) {
    bytes -= freedBytes;
    truncateSync(path, bytes);
    await sleep(clock, freedPauseMs);
  }
}
