import { Database } from "bun:sqlite";
import { readFileSync } from "node:fs";
import os from "node:os";
import { join } from "node:path";
import { describeHardware } from "../../src/cli/selftest/machine.ts";
import { machineCpuSeconds } from "./meter.ts";

export interface Machine {
  hardware: string;
  versions: string;
  busyBefore: string;
}

export async function describeMachine(root: string): Promise<Machine> {
  const [sqlite] = new Database(":memory:").query<{ version: string }, []>("SELECT sqlite_version() version").all();
  const product = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { version: string };
  return {
    hardware: describeHardware(),
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
