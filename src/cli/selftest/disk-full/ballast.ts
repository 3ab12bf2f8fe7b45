import { randomFillSync } from "node:crypto";
import { closeSync, fsyncSync, ftruncateSync, openSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";
import { StartupError } from "../../../domain/errors.ts";
import { isDiskFull } from "../../../lib/disk-full.ts";
import { messageOf } from "../../../lib/error-message.ts";
import { freeBytesOf } from "../../../lib/free-bytes.ts";
import { type Account, type Api, openAccount } from "../rig/account.ts";
import type { Disk } from "./run.ts";

/** Filling a larger disk would take minutes, and might affect others. */
const mostFreeBytes = 1024 * 2 ** 20;
/** If the log was not copied back before the disk was full, it takes as much again once there is room. */
const fewestFreeBytes = 20 * 2 ** 20;
/** How much room the ballast leaves for events to fill. */
const leftBytes = 1 * 2 ** 20;
const chunkBytes = 64 * 2 ** 10;

/** @throws StartupError unless the file system is a small one */
export function checkSmall(folder: string): void {
  const freeBytes = freeBytesIn(folder);
  if (freeBytes >= fewestFreeBytes && freeBytes <= mostFreeBytes) return;
  const free = `${Math.round(freeBytes / 2 ** 20)} MiB`;
  throw new StartupError(
    `The file system of ${folder} has ${free} free; it will be filled completely and must have ` +
      `${fewestFreeBytes / 2 ** 20} to ${mostFreeBytes / 2 ** 20} MiB. ${mountOne}`,
  );
}

const mountOne = "Try: mkdir /mnt/small && mount -t tmpfs -o size=64m tmpfs /mnt/small, and --dir /mnt/small";

/** A folder that is missing is not made: it would be on a disk that is not meant. */
function freeBytesIn(folder: string): number {
  try {
    return freeBytesOf(folder);
  } catch (error) {
    throw new StartupError(`${folder} cannot be filled (${messageOf(error)}). ${mountOne}`);
  }
}

/** A small file system: a ballast file takes almost all of it, events take the rest, and then the file is removed. */
export function createBallastDisk(folder: string, operatorToken: string): Disk {
  const ballast = join(folder, "ballast");
  let filler: Account | null = null;
  return {
    async fillUp(api: Api) {
      filler ??= await openAccount(api, { hooks: [], receiverUrl: "", operatorToken });
      // The filler's events stay, because after a full disk their erasure is retried only some seconds later.
      if (freeBytesOf(folder) < fewestFreeBytes)
        throw new Error("the disk is exhausted. Try: fewer --cycles, or a larger disk");
      writeBallast(ballast);
      return filler;
    },
    async makeRoom() {
      rmSync(ballast);
    },
  };
}

/**
 * Takes everything and gives a little back: how much a file system holds besides its own bookkeeping is only known once it is
 * full. Random bytes, because some file systems compress.
 */
function writeBallast(path: string): void {
  const file = openSync(path, "w", 0o600);
  let size = 0;
  try {
    const chunk = Buffer.alloc(chunkBytes);
    for (;;) size += writeSync(file, randomFillSync(chunk));
  } catch (error) {
    if (!isDiskFull(error)) throw error;
    ftruncateSync(file, Math.max(0, size - leftBytes));
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}
