import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/**
 * A control group of Linux, of either version. Version 1 has a tree for each resource, and the group is a folder in each that
 * it needs; in version 2 it is one folder.
 */
export interface ControlGroup {
  /** Runs a command inside. */
  enter(command: readonly string[]): string[];
  /** Moves a process inside. What it starts from then on begins there. */
  add(pid: number): void;
  /** At most so much of the processors, for everything inside together; null: no limit. Needs `cpu`. */
  limitCores(cores: number | null): void;
  /** Processor seconds of everything that ran inside, and in the groups below. Needs `cpu`. */
  cpuSeconds(): number;
  /** How often the system killed something in it for want of memory. Needs `memoryBytes`. */
  kills(): number;
  /** One below, for which the limits of this one hold as well. */
  within(name: string): ControlGroup;
  /** What is still inside goes back to where this process came from. */
  remove(): void;
}

export interface ControlGroupWish {
  /** A limit of memory; the page cache counts, and a process beyond it is killed. */
  memoryBytes?: number;
  /** Processors are counted, and may be limited; before others outside it comes first. */
  cpu?: boolean;
}

/** Below the group of this process, so that the limits that hold for it go on to hold. Null where that is not allowed. */
export function createControlGroup(wish: ControlGroupWish): ControlGroup | null {
  const name = `postrider-${process.pid}`;
  for (const version of [createV1, createV2]) {
    try {
      return version(name, wish);
    } catch {
      // Of the other version, or not allowed.
    }
  }
  return null;
}

/**
 * In which a limit is counted. In the usual tenth of a second a node of 0.3 cores would stand still for 70 ms after 30; this
 * way it is like a slow processor.
 */
const periodUs = 10_000;
const mount = "/sys/fs/cgroup";

const nanosecondsPerSecond = 1e9;
const microsecondsPerSecond = 1e6;

/** @param parents of each resource's tree */
function v1Group(parents: Readonly<Record<string, string>>, name: string): ControlGroup {
  const folders = Object.fromEntries(Object.entries(parents).map(([tree, parent]) => [tree, join(parent, name)]));
  const all = Object.values(folders);
  const at = (tree: string, file: string) => join(folders[tree] ?? "", file);
  makeAll(all);
  return {
    ...membersOf(all, Object.values(parents)),
    limitCores(cores) {
      writeFileSync(at("cpu", "cpu.cfs_period_us"), String(periodUs));
      writeFileSync(at("cpu", "cpu.cfs_quota_us"), String(cores === null ? -1 : Math.round(cores * periodUs)));
    },
    cpuSeconds: () => Number(readFileSync(at("cpuacct", "cpuacct.usage"), "utf8")) / nanosecondsPerSecond,
    kills: () => Number(/oom_kill (\d+)/.exec(readFileSync(at("memory", "memory.oom_control"), "utf8"))?.[1] ?? 0),
    within: (child) => v1Group(folders, child),
  };
}

function createV1(name: string, { memoryBytes, cpu = false }: ControlGroupWish): ControlGroup {
  const trees = [...(cpu ? ["cpu", "cpuacct"] : []), ...(memoryBytes === undefined ? [] : ["memory"])];
  const own = readFileSync("/proc/self/cgroup", "utf8");
  const parents = Object.fromEntries(
    trees.map((tree) => {
      const path = new RegExp(`^\\d+:(?:[^:]*,)?${tree}(?:,[^:]*)?:(.*)$`, "m").exec(own)?.[1];
      if (path === undefined || !existsSync(join(mount, tree))) throw new Error(`There is no tree of ${tree}.`);
      return [tree, join(mount, tree, path)];
    }),
  );
  return limited(v1Group(parents, name), () => {
    if (memoryBytes !== undefined)
      writeExisting(join(parents.memory ?? "", name, "memory.limit_in_bytes"), memoryBytes);
    // The most that there is.
    if (cpu) writeExisting(join(parents.cpu ?? "", name, "cpu.shares"), 262_144);
  });
}

function v2Group(parent: string, name: string): ControlGroup {
  const folder = join(parent, name);
  makeAll([folder]);
  return {
    ...membersOf([folder], [parent]),
    limitCores: (cores) =>
      writeFileSync(join(folder, "cpu.max"), `${cores === null ? "max" : Math.round(cores * periodUs)} ${periodUs}`),
    cpuSeconds: () =>
      Number(/^usage_usec (\d+)/m.exec(readFileSync(join(folder, "cpu.stat"), "utf8"))?.[1]) / microsecondsPerSecond,
    kills: () => Number(/oom_kill (\d+)/.exec(readFileSync(join(folder, "memory.events"), "utf8"))?.[1] ?? 0),
    within(child) {
      writeFileSync(join(folder, "cgroup.subtree_control"), "+cpu");
      return v2Group(folder, child);
    },
  };
}

function createV2(name: string, { memoryBytes, cpu = false }: ControlGroupWish): ControlGroup {
  return limited(v2Group(mount, name), () => {
    if (memoryBytes !== undefined) writeExisting(join(mount, name, "memory.max"), memoryBytes);
    if (cpu) writeExisting(join(mount, name, "cpu.weight"), 10_000);
  });
}

function limited(group: ControlGroup, limit: () => void): ControlGroup {
  try {
    limit();
    return group;
  } catch (error) {
    group.remove();
    throw error;
  }
}

/** Where its controller is off a group has no such file, and writing would not fail everywhere. */
function writeExisting(path: string, value: number): void {
  if (!existsSync(path)) throw new Error(`There is no ${path}.`);
  writeFileSync(path, String(value));
}

/** Two resources of version 1 may share a tree, which then has two names. */
function makeAll(folders: readonly string[]): void {
  for (const folder of folders) if (!existsSync(folder)) mkdirSync(folder);
}

function membersOf(
  folders: readonly string[],
  parents: readonly string[],
): Pick<ControlGroup, "enter" | "add" | "remove"> {
  const procs = (folder: string) => join(folder, "cgroup.procs");
  return {
    enter: (command) => [
      "sh",
      "-c",
      `${folders.map((folder) => `echo $$ > "${procs(folder)}" && `).join("")}exec "$@"`,
      "sh",
      ...command,
    ],
    add(pid) {
      for (const folder of folders) writeFileSync(procs(folder), String(pid));
    },
    remove() {
      folders.forEach((folder, i) => {
        try {
          for (const pid of readFileSync(procs(folder), "utf8").split("\n").filter(Boolean)) {
            writeFileSync(procs(parents[i] ?? ""), pid);
          }
          rmdirSync(folder);
        } catch {
          // A process that is just ending, or the other name of a tree.
        }
      });
    },
  };
}
