import { StartupError } from "../domain/errors.ts";
import { freeBytesOf } from "../lib/free-bytes.ts";

/**
 * A server on the same disk takes no events below its floor, so a backup stops before that.
 * @param bytes are about to be written
 * @throws StartupError when they do not fit
 */
export function checkRoom(folder: string, bytes: number, leaveFreeBytes: number): void {
  const free = freeBytesOf(folder);
  if (free >= bytes + leaveFreeBytes) return;
  throw new StartupError(
    `${folder} has ${mebibytes(free)} free; ${bytes > 0 ? `${mebibytes(bytes)} are needed, and ` : ""}` +
      `${mebibytes(leaveFreeBytes)} stay free (POSTRIDER_MIN_FREE_DISK). Try: free up space, or another folder.`,
  );
}

/**
 * The log of a running server grows for as long as a backup reads, wherever that is written to.
 * @throws StartupError when the server would soon take no events for it
 */
export function checkRoomForLog(dataDir: string, leaveFreeBytes: number): void {
  const free = freeBytesOf(dataDir);
  if (free >= leaveFreeBytes) return;
  throw new StartupError(
    `${dataDir} has ${mebibytes(free)} free: the log of its server grows while a backup reads, and ` +
      `${mebibytes(leaveFreeBytes)} stay free (POSTRIDER_MIN_FREE_DISK). Try: at an hour with less traffic, or free up space.`,
  );
}

const mebibytes = (bytes: number) => `${Math.ceil(bytes / 2 ** 20)} MiB`;
