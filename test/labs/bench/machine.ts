import { Database } from "bun:sqlite";
import { readFileSync } from "node:fs";
import os from "node:os";
import { join } from "node:path";
import { describeHardware, measureSync, mountOf, type SyncLatency } from "../../../src/cli/selftest/rig/machine.ts";
import { machineCpuSeconds } from "./meter.ts";
import { root } from "./servers.ts";

export interface Machine {
  hardware: string;
  versions: string;
  busyBefore: string;
}

/** What a figure was taken on: it is printed with every one. */
export interface Surroundings {
  machine: Machine;
  fileSystem: string;
  fsync: SyncLatency;
}

/** @param folder where the data will be */
export async function describeSurroundings(folder: string): Promise<Surroundings> {
  const { type, device, isInMemory } = mountOf(folder);
  return {
    machine: await describeMachine(),
    fileSystem: `${folder} on ${type} (${device})${isInMemory ? ", IN MEMORY: a sync costs nothing" : ""}`,
    fsync: measureSync(folder),
  };
}

/** Where data goes when nothing else is said. In memory a read and a sync cost nothing, and figures would flatter. */
export const folderOnDisk = (): string =>
  mountOf(os.tmpdir()).isInMemory ? join(root, "node_modules", ".cache") : os.tmpdir();

export async function describeMachine(): Promise<Machine> {
  const [sqlite] = new Database(":memory:").query<{ version: string }, []>("SELECT sqlite_version() version").all();
  const product = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { version: string };
  return {
    hardware: describeHardware(),
    versions: [
      `postrider ${product.version} (${commitOf()})`,
      `Bun ${Bun.version}`,
      `SQLite ${sqlite?.version}`,
      ...["elysia", "drizzle-orm"].map((name) => `${name} ${versionOf(name)}`),
    ].join(", "),
    busyBefore: await busyShare(),
  };
}

function commitOf(): string {
  const git = (...args: string[]) =>
    Bun.spawnSync(["git", "-C", root, ...args], { stderr: "ignore" }).stdout.toString();
  const commit = git("rev-parse", "--short", "HEAD").trim();
  if (commit === "") return "no commit";
  return git("status", "--porcelain", "--", "src").trim() === "" ? commit : `${commit} with changes`;
}

function versionOf(name: string): string {
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
