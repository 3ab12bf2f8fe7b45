import { openSync, writeSync } from "node:fs";
import { createThreads, type StartThread, startWorker } from "../../src/lib/threads.ts";

/** Starts three threads where no descriptor is left. Run by `threads.test.ts`, with a limit of few. */
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

const threads = createThreads({ begin: () => say("pause"), end: () => say("go on") });
const start = process.argv[2] === "threads" ? threads.start : startWorker;
for (const name of ["sender", "reader", "probes"]) {
  useUp();
  say(await greet(start, name));
}
process.exit(0);
