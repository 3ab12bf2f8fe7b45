import { holdDescriptors } from "./descriptors.ts";
import { oneLine } from "./error-message.ts";

/** What is used of a thread. */
export type Thread = Pick<
  Worker,
  "onmessage" | "onerror" | "postMessage" | "addEventListener" | "ref" | "unref" | "terminate"
>;

/** @param script the thread's program, which the build lists as an entry point */
export type StartThread = (script: URL, options?: Bun.WorkerOptions) => Thread;

/** Enough for a program that nobody connects to. */
export const startWorker: StartThread = (script, options) => new Worker(script, { env: {}, ...options });

/** Processor time that this thread has taken so far, in ms; null: the system does not tell. */
export function threadCpuMs(): number | null {
  try {
    const { user, system } = process.threadCpuUsage();
    return (user + system) / 1000;
  } catch {
    return null;
  }
}

/** How long this thread has been busy, in ms: with a processor, or standing still for a disk. Nothing else gets its turn then. */
export interface BusyTime {
  stoodStill(ms: number): void;
  /** Null: the system does not tell. */
  totalMs(): number | null;
}

export function createBusyTime(): BusyTime {
  let stillMs = 0;
  return {
    stoodStill(ms) {
      stillMs += ms;
    },
    totalMs() {
      const cpuMs = threadCpuMs();
      return cpuMs === null ? null : cpuMs + stillMs;
    },
  };
}

/**
 * What ended a thread, as one line of bounded length. The runtime quotes the lines of code around it first, and those of the
 * executable are as long as the program.
 */
export const faultOf = ({ message: text }: Pick<ErrorEvent, "message">): string =>
  oneLine(text.replace(/^(?: *\d+ \|.*\n)+ *\^ *\n/, ""));

export interface Threads {
  readonly start: StartThread;
  /** Gives back the descriptors that are held for threads to come. */
  release(): void;
}

/** For three threads (sender, reader, health probes): two each for an event loop, and the files that a reader opens. */
const heldForThreads = 16;

/**
 * Starts threads even if connections have used up the file descriptors. Without two for the new thread's event loop, Bun 1.4.5
 * ends the process ("bun ran out of file descriptors"): a flood of connections would end a server that makes its first attempt
 * just then. That is why some are held in reserve, and while a thread starts, no connection is accepted that would take them.
 *
 * @param accepting pauses the acceptance of connections
 */
export function createThreads(accepting: { begin(): void; end(): void }): Threads {
  const reserve = holdDescriptors(heldForThreads);
  let starting = 0;

  function begin(): void {
    starting += 1;
    accepting.begin();
    reserve.release();
  }

  function end(): void {
    starting -= 1;
    if (starting > 0) return;
    reserve.take();
    accepting.end();
  }

  return {
    start(script, options) {
      begin();
      const thread = startWorker(script, options);
      // Whichever comes first: a thread that fails as it starts never opens.
      const starts = new AbortController();
      starts.signal.addEventListener("abort", end);
      const { signal } = starts;
      for (const event of ["open", "error", "close"] as const) {
        thread.addEventListener(event, () => starts.abort(), { signal });
      }
      return thread;
    },
    release: reserve.release,
  };
}
