import { statfsSync } from "node:fs";

/** What is left to this user of the disk that a folder is on. @throws the system's error when it cannot be asked */
export function freeBytesOf(folder: string): number {
  const { bavail, bsize } = statfsSync(folder);
  return bavail * bsize;
}
