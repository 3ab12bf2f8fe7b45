import { parseArgs } from "node:util";
import { makeFolder, runBench, sayBars, sharedOptions } from "./command.ts";
import { nowUs } from "./event.ts";
import { atRate } from "./generator.ts";
import { describeSurroundings } from "./machine.ts";
import { positive } from "./options.ts";
import { say, showProgress } from "./output.ts";
import { type PhaseResult, runPhase } from "./phase.ts";
import { type Receiver, startReceiver } from "./receiver.ts";
import { bar, machineLines, mb, phaseLine } from "./report.ts";
import { type Server, startProduct, startRelay } from "./servers.ts";
import { createApi, createTenants } from "./tenants.ts";
import { threadsLine, watchedThreads, watchThreads } from "./threads.ts";

/** `bun run bench:little`: what the server costs while nothing happens, and under little load. */
const help = `Usage: bun run bench:little [options]

  --seconds 30       of each part
  --rate 200         events a second under little load
  --data-dir DIR     where the temporary data folder is made
  --source           run src/main.ts instead of dist/postrider
  --no-gate          exit with 0 also when a bar is missed
`;

/** The bars. */
const maxStartBytes = 90e6;
const maxIdleWakeups = 1;
const maxLittleCores = 0.12;

const warmupSeconds = 10;

/** For what is still to be done after the start. */
const startSeconds = 10;

/** Until the runtime's collector rests: it looks once a second for 30 s after memory has changed. */
const restSeconds = 40;

await runBench({ name: "bench:little", readOptions, run: benchLittle });

function readOptions(args: readonly string[]) {
  const { values } = parseArgs({
    args: [...args],
    options: {
      seconds: { type: "string", default: "30" },
      rate: { type: "string", default: "200" },
      ...sharedOptions,
    },
  });
  if (values.help) return help;
  return {
    seconds: positive("seconds", values.seconds),
    rate: positive("rate", values.rate),
    dataDir: values["data-dir"],
    source: values.source,
    gate: !values["no-gate"],
  };
}

type Options = Exclude<ReturnType<typeof readOptions>, string>;

async function benchLittle({ seconds, rate, dataDir: parent, source, gate }: Options): Promise<number> {
  if (process.platform !== "linux") throw new Error("The bench reads /proc. Try: on Linux.");
  const dataDir = makeFolder(parent);
  say(machineLines(await describeSurroundings(dataDir)));
  say("");
  const server = await startProduct({ dataDir, source });
  await wait(startSeconds, "after the start");
  const startBytes = server.meter.residentBytes();
  await wait(restSeconds, "for rest");
  say(`started       resident ${mb(startBytes)}`);
  const idle = await lookAtIdle("idle", server, seconds);

  const receiver = startReceiver();
  const apiKeys = (await createTenants(createApi(server.port), dataDir, [receiver.port])).map(({ apiKey }) => apiKey);
  const threads = watchedThreads(server.pid);
  const little = await runPhase({ ...server, apiKeys }, receiver, {
    label: `${rate}/s`,
    pace: (startUs) => atRate(rate, startUs),
    warmupSeconds,
    seconds,
    atEdge: threads.atEdge,
  });
  say(phaseLine(`${rate}/s`, little));
  say(threads.line());
  const relay = await runRelay(rate, seconds, receiver);
  say(phaseLine("bare relay", relay));
  await wait(restSeconds, "for rest");
  const idleAgain = await lookAtIdle("idle again", server, seconds);
  receiver.close();
  await server.stop();

  say("");
  const wakeups = Math.max(idle, idleAgain);
  return sayBars(
    [
      bar("resident memory at the start", startBytes < maxStartBytes, mb(startBytes), `under ${mb(maxStartBytes)}`),
      bar("wake-ups a second while idle", wakeups < maxIdleWakeups, wakeups.toFixed(1), `under ${maxIdleWakeups}`),
      bar(
        `processors at ${rate} events/s`,
        little.serverCores <= maxLittleCores,
        little.serverCores.toFixed(3),
        `at most ${maxLittleCores}`,
      ),
    ],
    gate,
  );
}

/** What a relay takes that stores and signs nothing: most of it is waking up, which no server is spared. */
async function runRelay(rate: number, seconds: number, receiver: Receiver): Promise<PhaseResult> {
  const relay = await startRelay("bare-relay.ts", receiver.port, { client: "node" });
  const pace = (startUs: number) => atRate(rate, startUs);
  const result = await runPhase(relay, receiver, { label: "bare relay", pace, warmupSeconds, seconds });
  await relay.stop();
  return result;
}

async function wait(seconds: number, why: string): Promise<void> {
  showProgress(`waiting ${seconds} s ${why}`);
  await Bun.sleep(seconds * 1000);
}

/** @returns wake-ups a second, of all threads */
async function lookAtIdle(label: string, { pid, meter }: Server, seconds: number): Promise<number> {
  const look = watchThreads(pid);
  const cpuBefore = meter.cpuSeconds();
  const startUs = nowUs();
  showProgress(`${label}  ${seconds} s`);
  await Bun.sleep(seconds * 1000);
  const threads = look();
  const cores = (meter.cpuSeconds() - cpuBefore) / ((nowUs() - startUs) / 1e6);
  const wakeups = threads.reduce((sum, thread) => sum + thread.wakeups, 0);
  say(`${label.padEnd(14)}${cores.toFixed(4)} cores, ${wakeups.toFixed(1)} wake-ups/s: ${threadsLine(threads)}`);
  return wakeups;
}
