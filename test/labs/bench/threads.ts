import { readdirSync, readFileSync } from "node:fs";

/** What one thread of a process did over a time. */
export interface ThreadUse {
  /** As the system has it, with a number where several have one name: in the order in which they were started. */
  name: string;
  /** Processor seconds for each second. */
  cores: number;
  /** How often a second it went to sleep by itself, and so was woken. */
  wakeups: number;
}

/** Watches the threads of a process from outside, from now on; those that have ended meanwhile are left out. */
export function watchThreads(pid: number): () => ThreadUse[] {
  const before = new Map(readThreads(pid).map((thread) => [thread.id, thread]));
  const startMs = performance.now();
  return () => {
    const seconds = (performance.now() - startMs) / 1000;
    const counts = new Map<string, number>();
    return readThreads(pid).map(({ id, name, ranNs, switches }) => {
      const count = (counts.get(name) ?? 0) + 1;
      counts.set(name, count);
      const then = before.get(id);
      return {
        name: count === 1 ? name : `${name} ${count}`,
        cores: (ranNs - (then?.ranNs ?? 0)) / 1e9 / seconds,
        wakeups: (switches - (then?.switches ?? 0)) / seconds,
      };
    });
  };
}

/** Of the measured time of a phase, whose `atEdge` is to be called as it begins and ends. */
export function watchedThreads(pid: number): { atEdge(): void; uses(): readonly ThreadUse[]; line(): string } {
  let look: (() => ThreadUse[]) | undefined;
  let uses: readonly ThreadUse[] = [];
  return {
    atEdge() {
      if (look === undefined) look = watchThreads(pid);
      else uses = look();
    },
    uses: () => uses,
    line: () => `${" ".repeat(16)}${threadsLine(uses)}`,
  };
}

/** Those that did something worth a line. */
export function threadsLine(threads: readonly ThreadUse[]): string {
  const busy = threads.filter(({ cores, wakeups }) => cores >= 0.005 || wakeups >= 1);
  return busy
    .toSorted((a, b) => b.cores - a.cores)
    .map(({ name, cores, wakeups }) => `${name} ${cores.toFixed(3)} (${wakeups.toFixed(0)}/s)`)
    .join(", ");
}

interface ThreadReading {
  id: number;
  name: string;
  ranNs: number;
  switches: number;
}

function readThreads(pid: number): ThreadReading[] {
  const folder = `/proc/${pid}/task`;
  return readdirSync(folder)
    .map(Number)
    .toSorted((a, b) => a - b)
    .flatMap((id) => {
      try {
        const read = (file: string) => readFileSync(`${folder}/${id}/${file}`, "latin1");
        const switches = Number(/^voluntary_ctxt_switches:\s+(\d+)/m.exec(read("status"))?.[1]);
        return [{ id, name: read("comm").trim(), ranNs: Number(read("schedstat").split(" ")[0]), switches }];
      } catch {
        // It ended between the two looks.
        return [];
      }
    });
}
