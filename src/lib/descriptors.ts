import { closeSync, openSync, readdirSync, readFileSync } from "node:fs";
import { codeOf } from "./error-message.ts";

/** Open descriptors (files, sockets) of this process, and how many it may have. */
export interface Descriptors {
  readonly open: number;
  readonly limit: number;
}

/**
 * Counts the descriptors; null where the system does not say (all but Linux). Reading takes a descriptor itself, so it
 * fails when there is none left.
 *
 * The limit is the hard one: the runtime raises the soft limit to it as it starts.
 */
export function countDescriptors(): Descriptors | null {
  const limit = descriptorLimit();
  if (limit === null) return null;
  try {
    // One of them is the folder's own.
    return { open: readdirSync("/proc/self/fd").length - 1, limit };
  } catch {
    return { open: limit, limit };
  }
}

let lastKnownLimit: number | null = null;

function descriptorLimit(): number | null {
  if (process.platform !== "linux") return null;
  try {
    const [, soft] = /^Max open files\s+(\d+)/m.exec(readFileSync("/proc/self/limits", "utf8")) ?? [];
    if (soft !== undefined) lastKnownLimit = Number(soft);
  } catch {
    // No descriptor is left to read it with.
  }
  return lastKnownLimit;
}

/**
 * The numbers of the open descriptors, and of some that have been closed meanwhile. Only for Linux. The folder that lists them
 * takes a descriptor to read; when none is left for it, every number below the limit is in use.
 */
export function openDescriptors(): readonly number[] {
  try {
    return readdirSync("/proc/self/fd").map(Number);
  } catch (error) {
    if (codeOf(error) !== "EMFILE") return [];
    return Array.from({ length: descriptorLimit() ?? 0 }, (_, descriptor) => descriptor);
  }
}

/** Descriptors held in reserve: released, they let so many files be opened when none is left. */
export interface HeldDescriptors {
  /** Takes those that are not held, or as many of them as there are: the rest is taken the next time. */
  take(): void;
  release(): void;
}

export function holdDescriptors(count: number): HeldDescriptors {
  const held: number[] = [];

  function take(): void {
    try {
      while (held.length < count) held.push(openSync("/dev/null", "r"));
    } catch {
      // None is left.
    }
  }

  take();
  return {
    take,
    release() {
      for (const descriptor of held.splice(0)) closeSync(descriptor);
    },
  };
}

/** A descriptor held in reserve: released, it lets one file be opened when none is left. */
export interface ReserveDescriptor {
  /** Runs a task that opens one file at a time, with the reserve's place free for it. */
  lend<T>(task: () => T): T;
  /** The lowest free number, not counting the reserve's own; `limit` when there is none. */
  lowestFree(limit: number): number;
  release(): void;
}

export function createReserveDescriptor(): ReserveDescriptor {
  const { take, release } = holdDescriptors(1);

  return {
    lend(task) {
      release();
      try {
        return task();
      } finally {
        take();
      }
    },
    lowestFree(limit) {
      try {
        const descriptor = openSync("/dev/null", "r");
        closeSync(descriptor);
        // Somebody else may have taken it first.
        take();
        return descriptor;
      } catch {
        return limit;
      }
    },
    release,
  };
}
