import { StartupError } from "../domain/errors.ts";
import { freeBytesOf } from "../lib/free-bytes.ts";

/**
 * A server on the same disk refuses events once free space falls below its floor, so a backup stops before that.
 * @param bytes about to be written
 * @throws StartupError when they do not fit
 */
export function checkRoom(folder: string, bytes: number, leaveFreeBytes: number): void {
  const free = freeBytesOf(folder);
  if (free >= bytes + leaveFreeBytes) return;
  const needed = [
    ...(bytes > 0 ? [`${mebibytes(bytes)} needed`] : []),
    ...(leaveFreeBytes > 0 ? [`${mebibytes(leaveFreeBytes)} kept free (POSTRIDER_MIN_FREE_DISK)`] : []),
  ];
  throw new StartupError(
    `${folder} has ${wholeMebibytes(free)} free, with ${needed.join(" and ")}. Try: free up space, or another folder.`,
  );
}

/**
 * A running server's log grows for as long as a backup reads, wherever the backup is written.
 * @param folder of the database
 * @throws StartupError when the server would soon refuse events because of it
 */
export function checkRoomForLog(folder: string, leaveFreeBytes: number): void {
  const free = freeBytesOf(folder);
  if (free >= leaveFreeBytes) return;
  throw new StartupError(
    `${folder} has ${wholeMebibytes(free)} free: the log of its server grows while a backup reads, and ` +
      `${mebibytes(leaveFreeBytes)} stay free (POSTRIDER_MIN_FREE_DISK). Try: at an hour with less traffic, or free up space.`,
  );
}

const mebibytes = (bytes: number) => `${Math.ceil(bytes / 2 ** 20)} MiB`;
/** Of what there is: a disk that is full has none. */
const wholeMebibytes = (bytes: number) => `${Math.floor(bytes / 2 ** 20)} MiB`;
