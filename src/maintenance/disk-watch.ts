import type { Clock } from "../lib/clock.ts";
import { freeBytesOf as readFreeBytes } from "../lib/free-bytes.ts";
import type { Log } from "../lib/log.ts";

/** How long a reading of the free space stays valid. At 100 MB/s a disk loses the smallest floor in that time. */
const readingLifetimeMs = 1000;

/** A disk that hovers at its floor is logged this often, not on each reading. */
const longestSilenceMs = 10_000;

export interface DiskWatchOptions {
  folder: string;
  minFreeBytes: number;
  clock: Pick<Clock, "monotonicMs">;
  log: Log;
  /** Called when free space falls below the floor. */
  onLow?(figures: { freeBytes: number; floorBytes: number }): void;
  /** @default what the system says */
  freeBytesOf?(folder: string): number;
}

export interface DiskWatch {
  /** Whether the disk is above its floor. */
  hasRoom(): boolean;
  /** Like `hasRoom`, for those that refuse nothing because of it. */
  isLow(): boolean;
  freeBytes(): number;
  /** For a start: a disk that is low already is told of before the first event is refused. */
  look(): void;
}

/**
 * Whether the disk of a folder is above its floor. It is read on demand, at most once a second, so an idle server does no
 * work for it; a start looks once. A log line is written when the floor is crossed, in either direction.
 */
export function createDiskWatch({
  folder,
  minFreeBytes,
  clock,
  log,
  onLow,
  freeBytesOf = readFreeBytes,
}: DiskWatchOptions): DiskWatch {
  let readAt = Number.NEGATIVE_INFINITY;
  let free = Number.POSITIVE_INFINITY;
  let told = { isLow: false, at: Number.NEGATIVE_INFINITY };
  /** How often `hasRoom` has returned false since the last log line: each time, something was refused. */
  let refused = 0;

  function read(): number {
    const now = clock.monotonicMs();
    if (now - readAt >= readingLifetimeMs) {
      readAt = now;
      free = freeBytesOf(folder);
      tell(now);
    }
    return free;
  }

  function tell(now: number): void {
    const isLow = free < minFreeBytes;
    if (isLow === told.isLow || now - told.at < longestSilenceMs) return;
    told = { isLow, at: now };
    const figures = { freeBytes: free, floorBytes: minFreeBytes };
    if (isLow) {
      log.write("warn", "disk.low", { ...figures, effect: "no events are accepted" });
      onLow?.(figures);
    } else log.write("info", "disk.enough", { ...figures, refused });
    refused = 0;
  }

  const isLow = () => minFreeBytes > 0 && read() < minFreeBytes;

  return {
    hasRoom() {
      if (!isLow()) return true;
      refused += 1;
      return false;
    },
    isLow,
    freeBytes: read,
    look() {
      if (minFreeBytes > 0) read();
    },
  };
}
