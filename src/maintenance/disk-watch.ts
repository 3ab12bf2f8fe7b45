import { statfsSync } from "node:fs";
import type { Clock } from "../lib/clock.ts";

/** How long a reading of the free space is good for. At 100 MB/s the disk loses as much in it as the smallest floor. */
const readingLifetimeMs = 1000;

/**
 * Whether the disk of a folder is above its floor. It is read when asked, at most once a second, so an idle server does
 * nothing for it.
 */
export function createDiskWatch(folder: string, minFreeBytes: number, clock: Pick<Clock, "monotonicMs">) {
  let readAt = Number.NEGATIVE_INFINITY;
  let room = true;
  return function hasRoom(): boolean {
    if (minFreeBytes === 0) return true;
    const now = clock.monotonicMs();
    if (now - readAt >= readingLifetimeMs) {
      readAt = now;
      const { bavail, bsize } = statfsSync(folder);
      room = bavail * bsize >= minFreeBytes;
    }
    return room;
  };
}
