import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** A control group of Linux that takes a limit of memory; the page cache counts, and a process beyond it is killed. */
export interface MemoryGroup {
  /** Runs a command inside. */
  enter(command: readonly string[]): string[];
  /** How often the system killed something in it for want of memory. */
  kills(): number;
  remove(): void;
}

/** Below the group of this process, so that the limits that hold for it go on to hold. Null where that is not allowed. */
export function createMemoryGroup(limitBytes: number): MemoryGroup | null {
  return (
    create(v1Parent(), "memory.limit_in_bytes", "memory.oom_control", limitBytes) ??
    create("/sys/fs/cgroup", "memory.max", "memory.events", limitBytes)
  );
}

function v1Parent(): string | null {
  if (!existsSync("/sys/fs/cgroup/memory")) return null;
  const own = /^\d+:memory:(.*)$/m.exec(readFileSync("/proc/self/cgroup", "utf8"))?.[1];
  return own === undefined ? null : join("/sys/fs/cgroup/memory", own);
}

function create(parent: string | null, limitFile: string, eventsFile: string, limitBytes: number): MemoryGroup | null {
  if (parent === null) return null;
  const folder = join(parent, `postrider-${process.pid}`);
  try {
    mkdirSync(folder);
  } catch {
    return null;
  }
  try {
    if (!existsSync(join(folder, limitFile))) throw new Error("no memory controller");
    writeFileSync(join(folder, limitFile), String(limitBytes));
  } catch {
    rmdirSync(folder);
    return null;
  }
  return {
    enter: (command) => ["sh", "-c", `echo $$ > "${join(folder, "cgroup.procs")}" && exec "$@"`, "sh", ...command],
    kills: () => Number(/oom_kill (\d+)/.exec(readFileSync(join(folder, eventsFile), "utf8"))?.[1] ?? 0),
    remove() {
      try {
        rmdirSync(folder);
      } catch {
        // Still in use for a moment after its last process has ended.
      }
    },
  };
}
