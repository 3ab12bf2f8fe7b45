import { readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";

/** What is unfinished is named after its process, so that whoever kills that process can remove it. */

const staleMs = 24 * 60 * 60_000;

const fileEnd = (pid: number) => `.unfinished-${pid}`;
const folderStart = (pid: number) => `postrider-verify-${pid}-`;

/** Their names, whatever the process was. */
export const unfinishedFiles = /^\.postrider-.*\.unfinished-\d+$/;
export const verifyFolders = /^postrider-verify-/;

/** For a backup that is being written. */
export const unfinishedFile = (name: string): string => `.postrider-${name}${fileEnd(process.pid)}`;
/** What the name of a folder begins with in which a backup is verified. */
export const verifyFolder = (): string => folderStart(process.pid);

/** Removes what a process that was killed has left in the folder. */
export async function removeLeftBy(pid: number, folder: string): Promise<void> {
  const isLeft = (name: string) =>
    (name.startsWith(".postrider-") && name.endsWith(fileEnd(pid))) || name.startsWith(folderStart(pid));
  const left = (await readdir(folder)).filter(isLeft);
  await Promise.all(left.map((name) => rm(join(folder, name), { recursive: true, force: true })));
}

/**
 * Removes what processes that were killed have left in the folder: whatever has such a name and is a day older than our own, judged
 * by the disk's own timestamps. What is another user's stays.
 */
export async function removeStale(folder: string, own: string, names: RegExp): Promise<void> {
  const { mtimeMs: now } = await stat(own);
  // A user may write in a folder without being allowed to list it.
  const found = await readdir(folder).catch(() => []);
  for (const path of found.filter((name) => names.test(name)).map((name) => join(folder, name))) {
    try {
      if (now - (await stat(path)).mtimeMs > staleMs) await rm(path, { recursive: true, force: true });
    } catch {
      // Not ours to remove, or gone meanwhile.
    }
  }
}
