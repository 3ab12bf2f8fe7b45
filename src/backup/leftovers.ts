import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";

/** What is unfinished is named after its process, so that whoever kills that process can remove it. */

const fileEnd = (pid: number) => `.unfinished-${pid}`;
const folderStart = (pid: number) => `postrider-verify-${pid}-`;

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
