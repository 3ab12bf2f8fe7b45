import { closeSync, mkdtempSync, openSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isDiskFull } from "../../src/lib/disk-full.ts";

/** A small separate file system, in memory. */
export interface SmallDisk {
  readonly folder: string;
  /** Uses up every remaining byte. */
  fill(): void;
  empty(): void;
  /** Resizes it to this many mebibytes. */
  grow(mebibytes: number): void;
  /** From then on it takes no writes, as a disk that the kernel has found faulty. */
  makeReadOnly(): void;
  unmount(): void;
}

const chunkBytes = 4_096;

/** Null without the right to mount one: only root on Linux has it. */
export function mountSmallDisk(mebibytes: number): SmallDisk | null {
  if (process.platform !== "linux" || process.getuid?.() !== 0) return null;
  const folder = mkdtempSync(join(tmpdir(), "postrider-small-disk-"));
  const options = ["-t", "tmpfs", "-o", `size=${mebibytes}m`, "tmpfs", folder];
  if (!Bun.spawnSync(["mount", ...options], { stderr: "ignore" }).success) {
    rmSync(folder, { recursive: true });
    return null;
  }
  const ballast = join(folder, "ballast");
  return {
    folder,
    fill() {
      const file = openSync(ballast, "a");
      try {
        for (;;) writeSync(file, Buffer.alloc(chunkBytes));
      } catch (error) {
        if (!isDiskFull(error)) throw error;
      } finally {
        closeSync(file);
      }
    },
    empty: () => rmSync(ballast, { force: true }),
    grow: (size) => void Bun.spawnSync(["mount", "-o", `remount,size=${size}m`, folder]),
    makeReadOnly: () => void Bun.spawnSync(["mount", "-o", "remount,ro", folder]),
    unmount() {
      // Lazily: a connection of this process may still hold its files open.
      Bun.spawnSync(["umount", "-l", folder]);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
