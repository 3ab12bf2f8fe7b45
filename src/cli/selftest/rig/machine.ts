import { closeSync, fsyncSync, openSync, readFileSync, unlinkSync, writeSync } from "node:fs";
import os from "node:os";
import { join, resolve } from "node:path";

/** `4 × Intel(R) Xeon(R), 15.6 GiB, Linux 6.1.0 x64`: the hardware that a figure was measured on. */
export function describeHardware(): string {
  const processors = os.cpus();
  const memoryGib = (os.totalmem() / 2 ** 30).toFixed(1);
  const model = processors[0]?.model.trim() ?? "unknown processor";
  return `${processors.length} × ${model}, ${memoryGib} GiB, ${os.type()} ${os.release()} ${process.arch}`;
}

export interface Mount {
  readonly type: string;
  readonly device: string;
  readonly point: string;
  /** What is "on disk" there is lost when the power goes. */
  readonly isInMemory: boolean;
}

const inMemory = new Set(["tmpfs", "ramfs", "devtmpfs"]);
const unknownMount: Mount = { type: "unknown file system", device: "unknown", point: "", isInMemory: false };

/** The file system that holds a folder, by the longest mount point above it. Unknown where there is no `/proc`. */
export function mountOf(folder: string): Mount {
  const path = resolve(folder);
  let best = unknownMount;
  for (const line of mountLines()) {
    const [device = "", point = "", type = ""] = line.split(" ");
    const isAbove = path === point || path.startsWith(point.endsWith("/") ? point : `${point}/`);
    const isLonger = point.length >= best.point.length;
    if (point !== "" && isAbove && isLonger) best = { type, device, point, isInMemory: inMemory.has(type) };
  }
  return best;
}

function mountLines(): string[] {
  try {
    return readFileSync("/proc/self/mounts", "utf8").split("\n");
  } catch {
    return [];
  }
}

export interface SyncLatency {
  readonly p50Ms: number;
  readonly p99Ms: number;
}

const syncCount = 200;
const pageBytes = 4_096;

/** What one synced write costs in this folder: 4 KiB at a time, appended, each with an fsync. */
export function measureSync(folder: string): SyncLatency {
  const path = join(folder, "sync-probe");
  const page = Buffer.alloc(pageBytes, 1);
  const took: number[] = [];
  const file = openSync(path, "w", 0o600);
  try {
    for (let i = 0; i < syncCount; i++) {
      const startedAt = performance.now();
      writeSync(file, page, 0, pageBytes, i * pageBytes);
      fsyncSync(file);
      took.push(performance.now() - startedAt);
    }
  } finally {
    closeSync(file);
    unlinkSync(path);
  }
  return { p50Ms: percentile(took, 50), p99Ms: percentile(took, 99) };
}

/** The smallest value with at least this percentage of the values at or below it; 0 when there are none. */
export function percentile(values: readonly number[], percent: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.ceil((percent / 100) * sorted.length) - 1] ?? 0;
}
