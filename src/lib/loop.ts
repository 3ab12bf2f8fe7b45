import type { Clock } from "./clock.ts";

/** Work in the background, one step after the other. */
export interface Loop {
  start(): void;
  /** There is something to do: a resting loop takes its next step now. */
  wake(): void;
  /** Resolves when the step under way has ended; no other begins. */
  stop(): Promise<void>;
  /** Resolves when the loop rests, or has stopped. A pause after a failure is no rest. */
  whenIdle(): Promise<void>;
}

export interface LoopOptions {
  clock: Pick<Clock, "after">;
  /** What is left: a step at once (after a turn of the event loop), or rest until somebody wakes it. */
  step(): Promise<"more" | "rest">;
  /** Told of a step that threw; it is taken again after a pause. */
  onFailure(error: unknown): void;
  /** @default 1000 */
  failurePauseMs?: number;
}

export function createLoop({ clock, step, onFailure, failurePauseMs = 1000 }: LoopOptions): Loop {
  let running: Promise<void> | null = null;
  let stopping = false;
  let resting = false;
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

  async function rest(): Promise<void> {
    resting = true;
    settle();
    await wait(() => undefined);
    resting = false;
  }

  async function run(): Promise<void> {
    while (!stopping) {
      woken = false;
      let outcome: "more" | "rest" | "failed";
      try {
        outcome = await step();
      } catch (error) {
        outcome = "failed";
        onFailure(error);
      }
      if (stopping) break;
      if (outcome === "failed") await wait((done) => clock.after(failurePauseMs, done));
      else if (outcome === "more") await new Promise<void>((resolve) => setImmediate(resolve));
      else if (!woken) await rest();
    }
  }

  return {
    start() {
      if (!stopping) running ??= run();
    },
    wake() {
      woken = true;
      if (!resting) return;
      resting = false;
      interrupt?.();
    },
    async stop() {
      stopping = true;
      interrupt?.();
      await running;
      resting = true;
      settle();
    },
    async whenIdle() {
      if (running === null || resting) return;
      await new Promise<void>((resolve) => waiters.push(resolve));
    },
  };
}
