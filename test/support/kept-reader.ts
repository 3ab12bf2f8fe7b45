import type { Thread } from "../../src/lib/threads.ts";

/**
 * Threads of readers whose stores were closed, for stores of later tests: starting one takes 70 ms of the processor, three
 * times as much as everything else about a store. They keep no process alive.
 */
const kept: Worker[] = [];

/** What the thread says in place of its end. */
export const ended = "ended";

export function takeReaderThread(): Thread {
  const worker = kept.pop() ?? new Worker(new URL("./kept-reader-thread.ts", import.meta.url), { env: {}, smol: true });
  let isEnded = false;
  const thread: Thread & EventTarget = Object.assign(new EventTarget(), {
    onmessage: null,
    onerror: null,
    postMessage: (message: unknown) => worker.postMessage(message),
    ref: () => worker.ref(),
    unref: () => worker.unref(),
    terminate: () => isEnded || worker.terminate(),
  });
  worker.onmessage = (event) => {
    if (event.data !== ended) return thread.onmessage?.call(worker, event);
    isEnded = true;
    worker.unref();
    kept.push(worker);
    thread.dispatchEvent(new Event("close"));
  };
  worker.onerror = (event) => thread.onerror?.call(worker, event);
  return thread;
}
