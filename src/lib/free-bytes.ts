import { statfsSync } from "node:fs";

/** The bytes available to this user on the disk that holds a folder. @throws the system's error when it cannot be asked */
export function freeBytesOf(folder: string): number {
  const { bavail, bsize } = statfsSync(folder);
  return bavail * bsize;
}
