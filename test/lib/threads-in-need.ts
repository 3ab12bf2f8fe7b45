import { openSync, writeSync } from "node:fs";
import { startFetchThread } from "../../src/billing/paystack/http.ts";
import { createThreads, type StartThread, startWorker } from "../../src/lib/threads.ts";

/** Starts threads where no descriptor is left. Run by `threads.test.ts`, with a limit of few. */
const say = (text: string) => void writeSync(1, `${text}\n`);

function useUp(): void {
  try {
    for (;;) openSync("/dev/null", "r");
  } catch {}
}

const echo = new URL(`data:text/javascript,${encodeURIComponent("onmessage = ({ data }) => postMessage(data);")}`);

/** Resolves with the thread's answer. */
const greet = (start: StartThread, name: string): Promise<string> =>
  new Promise((resolve) => {
    const thread = start(echo);
    thread.onmessage = ({ data }) => resolve(data);
    thread.postMessage(name);
  });

async function startThree(start: StartThread): Promise<void> {
  for (const name of ["sender", "reader", "probes"]) {
    useUp();
    say(await greet(start, name));
  }
}

async function request(): Promise<void> {
  useUp();
  await fetch("http://127.0.0.1:9").catch(({ code }) => say(code));
}

const threads = createThreads({ begin: () => say("pause"), end: () => say("go on") });
const ways: Readonly<Record<string, () => Promise<void>>> = {
  threads: () => startThree(threads.start),
  workers: () => startThree(startWorker),
  async fetch() {
    await startFetchThread();
    await request();
  },
  "fetch alone": request,
};
await ways[process.argv[2] ?? ""]?.();
process.exit(0);
