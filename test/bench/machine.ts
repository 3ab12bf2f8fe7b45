import { Database } from "bun:sqlite";
import { closeSync, fsyncSync, openSync, readFileSync, unlinkSync, writeSync } from "node:fs";
import os from "node:os";
import { join } from "node:path";
import { createHistogram } from "./histogram.ts";
import { machineCpuSeconds } from "./meter.ts";

export interface FsyncLatency {
  p50Ms: number;
  p99Ms: number;
}

const fsyncCount = 200;
const pageBytes = 4_096;

/** What one synced write costs in this folder: 4 KiB behind each other, each with an fsync. */
export function measureFsync(folder: string): FsyncLatency {
  const path = join(folder, "fsync-probe");
  const page = Buffer.alloc(pageBytes, 1);
  const histogram = createHistogram();
  const file = openSync(path, "w", 0o600);
  try {
    for (let i = 0; i < fsyncCount; i++) {
      const startMs = performance.now();
      writeSync(file, page, 0, pageBytes, i * pageBytes);
      fsyncSync(file);
      histogram.record((performance.now() - startMs) * 1000);
    }
  } finally {
    closeSync(file);
    unlinkSync(path);
  }
  return { p50Ms: histogram.percentileMs(50), p99Ms: histogram.percentileMs(99) };
}

export interface Mount {
  type: string;
  device: string;
  point: string;
}

const inMemory = new Set(["tmpfs", "ramfs", "devtmpfs"]);

/** The file system that holds a folder, by the longest mount point above it. */
export function mountOf(folder: string): Mount & { isInMemory: boolean } {
  let best: Mount = { type: "unknown", device: "unknown", point: "" };
  for (const line of readFileSync("/proc/self/mounts", "utf8").split("\n")) {
    const [device = "", point = "", type = ""] = line.split(" ");
    const isAbove = folder === point || folder.startsWith(point.endsWith("/") ? point : `${point}/`);
    if (point !== "" && isAbove && point.length >= best.point.length) best = { type, device, point };
  }
  return { ...best, isInMemory: inMemory.has(best.type) };
}

export interface Machine {
  hardware: string;
  versions: string;
  busyBefore: string;
}

export async function describeMachine(root: string): Promise<Machine> {
  const processors = os.cpus();
  const memoryGib = (os.totalmem() / 2 ** 30).toFixed(1);
  const [sqlite] = new Database(":memory:").query<{ version: string }, []>("SELECT sqlite_version() version").all();
  const product = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { version: string };
  return {
    hardware: `${processors.length} × ${processors[0]?.model.trim() ?? "unknown"}, ${memoryGib} GiB, Linux ${os.release()} ${process.arch}`,
    versions: [
      `postrider ${product.version} (${commitOf(root)})`,
      `Bun ${Bun.version}`,
      `SQLite ${sqlite?.version}`,
      ...["elysia", "drizzle-orm"].map((name) => `${name} ${versionOf(root, name)}`),
    ].join(", "),
    busyBefore: await busyShare(),
  };
}

function commitOf(root: string): string {
  const git = (...args: string[]) =>
    Bun.spawnSync(["git", "-C", root, ...args], { stderr: "ignore" }).stdout.toString();
  const commit = git("rev-parse", "--short", "HEAD").trim();
  if (commit === "") return "no commit";
  return git("status", "--porcelain", "--", "src").trim() === "" ? commit : `${commit} with changes`;
}

function versionOf(root: string, name: string): string {
  const { version } = JSON.parse(readFileSync(join(root, "node_modules", name, "package.json"), "utf8")) as {
    version: string;
  };
  return version;
}

const busySampleMs = 1_000;
const muchShare = 0.1;

/** How busy the processors are with other things: a figure taken beside a compiler run is none. */
async function busyShare(): Promise<string> {
  const before = machineCpuSeconds();
  await Bun.sleep(busySampleMs);
  const share = (machineCpuSeconds() - before) / (busySampleMs / 1000) / os.cpus().length;
  const warning = share > muchShare ? ": SOMETHING ELSE RUNS, the figures will be too low" : "";
  return `processors ${(share * 100).toFixed(0)} % busy with other things${warning}`;
}
