import type { Clock } from "./clock.ts";

/** Background work, one step after the other. */
export interface Loop {
  start(): void;
  /** There is something to do: an idle loop takes its next step now, or the process that has the work is told. */
  wake(): void;
  /** Resolves when the step under way has ended; no other one begins. */
  stop(): Promise<void>;
  /** Resolves when the loop is idle, or has stopped. A pause after a failure is not idleness. */
  whenIdle(): Promise<void>;
}

export interface LoopOptions {
  clock: Pick<Clock, "after" | "monotonicMs">;
  /** Asked before each step. False: the work belongs to another process now, so the loop is idle and asks again every second. */
  mayStep(): boolean;
  /** Tells the process that has the work that there is something to do. */
  passOn(): void;
  /** Says what is left: another step soon (after a turn of the event loop, or `pausePerWork`), or nothing until it is woken. */
  step(): Promise<"more" | "idle">;
  /** Told of a step that threw; it is taken again after a pause. */
  onFailure(error: unknown): void;
  /** @default 1000 */
  failurePauseMs?: number;
  /** After a step that left more to do, the pause before the next one, as a multiple of how long the step took. @default 0 */
  pausePerWork?: number;
  /**
   * The limit of that pause, so that a step which had to wait, as when the disk is slow, does not put off the next one.
   * @default 50
   */
  longestPauseMs?: number;
}

/** How soon a loop notices that the work has become its own. */
const askAgainMs = 1000;

export function createLoop({
  clock,
  mayStep,
  passOn,
  step,
  onFailure,
  failurePauseMs = 1000,
  pausePerWork = 0,
  longestPauseMs = 50,
}: LoopOptions): Loop {
  let running: Promise<void> | null = null;
  let stopping = false;
  let idle = false;
  let woken = false;
  /** Ends the wait under way. */
  let interrupt: (() => void) | null = null;
  const waiters: (() => void)[] = [];

  function settle(): void {
    for (const resolve of waiters.splice(0)) resolve();
  }

  async function wait(begin: (done: () => void) => (() => void) | undefined): Promise<void> {
    let cancel: (() => void) | undefined;
    await new Promise<void>((resolve) => {
      interrupt = resolve;
      cancel = begin(resolve);
    });
    cancel?.();
    interrupt = null;
  }

  /** Waits until it is woken, or for this long. */
  async function rest(longestMs?: number): Promise<void> {
    idle = true;
    settle();
    await wait((done) => (longestMs === undefined ? undefined : clock.after(longestMs, done)));
    idle = false;
  }

  async function breathe(workedMs: number): Promise<void> {
    const restMs = Math.min(workedMs * pausePerWork, longestPauseMs);
    if (restMs > 0) await wait((done) => clock.after(restMs, done));
    else await new Promise<void>((resolve) => setImmediate(resolve));
  }

  async function run(): Promise<void> {
    while (!stopping) {
      woken = false;
      if (!mayStep()) {
        await rest(askAgainMs);
        continue;
      }
      const startedAt = clock.monotonicMs();
      let outcome: "more" | "idle" | "failed";
      try {
        outcome = await step();
      } catch (error) {
        outcome = "failed";
        onFailure(error);
      }
      if (stopping) break;
      if (outcome === "failed") await wait((done) => clock.after(failurePauseMs, done));
      else if (outcome === "more") await breathe(clock.monotonicMs() - startedAt);
      else if (!woken) await rest();
    }
  }

  return {
    start() {
      if (!stopping) running ??= run();
    },
    wake() {
      woken = true;
      if (!mayStep()) passOn();
      if (!idle) return;
      idle = false;
      interrupt?.();
    },
    async stop() {
      stopping = true;
      interrupt?.();
      await running;
      idle = true;
      settle();
    },
    async whenIdle() {
      if (running === null || idle) return;
      await new Promise<void>((resolve) => waiters.push(resolve));
    },
  };
}
