import { statfsSync } from "node:fs";
import { StartupError } from "../domain/errors.ts";

/**
 * A server on the same disk takes no events below its floor, so a backup stops before that.
 * @param bytes are about to be written
 * @throws StartupError when they do not fit
 */
export function checkRoom(folder: string, bytes: number, leaveFreeBytes: number): void {
  const { bavail, bsize } = statfsSync(folder);
  if (bavail * bsize >= bytes + leaveFreeBytes) return;
  throw new StartupError(
    `${folder} has ${mebibytes(bavail * bsize)} free; ${bytes > 0 ? `${mebibytes(bytes)} are needed, and ` : ""}` +
      `${mebibytes(leaveFreeBytes)} stay free (POSTRIDER_MIN_FREE_DISK). Try: free up space, or another folder.`,
  );
}

const mebibytes = (bytes: number) => `${Math.ceil(bytes / 2 ** 20)} MiB`;
