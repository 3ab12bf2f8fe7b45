import { closeSync, constants, fchownSync, openSync, statSync } from "node:fs";

/**
 * Gives a file that root has just made the owner of another one, whose place it takes or which it belongs to: commands that are
 * run as root leave nothing behind that the server's own user cannot use.
 *
 * By its descriptor, because the name may mean another file by now: the owner of the folder can see to that.
 */
export function keepOwner(file: number, like: string): void {
  if (process.getuid?.() !== 0) return;
  try {
    const found = statSync(like, { throwIfNoEntry: false });
    if (found) fchownSync(file, found.uid, found.gid);
  } catch {
    // A container's root, or a file system without owners: the next start says whose the file is, if that is wrong.
  }
}

const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW } = constants;

/** Like `keepOwner`, for a folder that root has just made. */
export function keepOwnerOfFolder(made: string, like: string): void {
  if (process.getuid?.() !== 0) return;
  const folder = openSync(made, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  try {
    keepOwner(folder, like);
  } finally {
    closeSync(folder);
  }
}
