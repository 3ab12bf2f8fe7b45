import { mkdirSync } from "node:fs";
import { resolve } from "node:path";
import { makeFolder, runBench, sayBars } from "./command.ts";
import { sumUpProfile } from "./cpu-profile.ts";
import { nowUs } from "./event.ts";
import { asFastAsPossible, atRate } from "./generator.ts";
import { median } from "./histogram.ts";
import { describeSurroundings } from "./machine.ts";
import { type Options, readOptions } from "./options.ts";
import { say, sayOnStandardError } from "./output.ts";
import { type Phase, type PhaseResult, runPhase } from "./phase.ts";
import { proveEverythingIsOn } from "./proof.ts";
import { type Receiver, startReceiver } from "./receiver.ts";
import { judgeBars, machineLines, phaseLine, type Results, ratioOf, summary, warnings } from "./report.ts";
import { type Server, startProduct, startRelay } from "./servers.ts";
import { createApi, createTenants, openStream } from "./tenants.ts";
import { watchedThreads } from "./threads.ts";

/**
 * `bun run bench`: Postrider with everything on beside the bare relay, on loopback, load generator and receiver included.
 *
 *   this process: 64 connections ──POST /v1/ingest──▶ server (a child) ──POST /hook/<n>──▶ receiver: this process
 *
 * At most 2,000 events are sent and not yet received, so the rate is what is delivered. One server process of each kind
 * serves all its runs: its memory is that of a server with a history, and its code is warm.
 */
const ceilingSeconds = 5;
/** Between two runs, so that what the last one left behind (checkpoints, garbage) is not charged to the next. */
const pauseMs = 1_000;

await runBench({ name: "bench", hint: "bun run bench --help", readOptions, run: bench });

async function bench(options: Options): Promise<number> {
  if (process.platform !== "linux") throw new Error("The bench reads /proc. Try: on Linux.");
  if (options.json) sayOnStandardError();
  const dataDir = makeFolder(options.dataDir, options.keep);
  const results: Results = {
    ...(await describeSurroundings(dataDir)),
    ceiling: undefined as unknown as PhaseResult,
    bare: [],
    full: [],
    half: undefined,
    peakBytes: undefined,
    streamMessages: 0,
    streamFailure: undefined,
  };
  say(machineLines(results));
  say("");

  const receiver = startReceiver();
  if (options.profileDir !== undefined) return profile(options, receiver, dataDir, options.profileDir);
  results.ceiling = await measureCeiling(options, receiver);
  say(phaseLine("ceiling", results.ceiling));
  await measure(options, receiver, dataDir, results);
  receiver.close();

  say(summary(results));
  for (const warning of warnings(results)) say(warning);
  const bars = judgeBars(results);
  say("");
  const exitCode = sayBars(bars, options.gate);
  if (options.keep) say(`kept ${dataDir}`);
  if (options.json) process.stdout.write(`${JSON.stringify({ ratio: ratioOf(results), ...results, bars })}\n`);
  return exitCode;
}

/** What load generator and receiver can do when the server is next to nothing. */
async function measureCeiling(options: Options, receiver: Receiver): Promise<PhaseResult> {
  const server = await startRelay("trivial-relay.ts", receiver.port);
  const seconds = Math.min(ceilingSeconds, options.seconds);
  const result = await runPhase(server, receiver, { ...fullLoad("ceiling", options), seconds });
  await server.stop();
  return result;
}

function fullLoad(label: string, { seconds, warmupSeconds }: Options): Phase {
  return { label, pace: () => asFastAsPossible, seconds, warmupSeconds };
}

async function measure(options: Options, receiver: Receiver, dataDir: string, results: Results): Promise<void> {
  const bare = await startRelay("bare-relay.ts", receiver.port, { client: options.client });
  const product = options.bareOnly ? undefined : await prepareProduct(options, receiver, dataDir);
  const run = async (server: Server, phase: Phase) => {
    await Bun.sleep(pauseMs);
    const threads = watchedThreads(server.pid);
    const result = await runPhase(server, receiver, { ...phase, atEdge: threads.atEdge });
    say(phaseLine(phase.label, result));
    if (server === product?.server) say(threads.line());
    return result;
  };

  for (let pair = 1; pair <= options.pairs; pair++) {
    results.bare.push(await run(bare, fullLoad(`bare ${pair}`, options)));
    if (product) results.full.push(await run(product.server, fullLoad(`postrider ${pair}`, options)));
  }
  await bare.stop();
  if (product === undefined) return;

  const targetRate = median(results.full.map(({ rate }) => rate)) / 2;
  const half = await run(product.server, {
    label: "half load",
    pace: (startUs) => atRate(targetRate, startUs),
    warmupSeconds: options.warmupSeconds,
    seconds: options.halfSeconds,
  });
  results.half = { ...half, targetRate };
  results.peakBytes = product.server.meter.peakBytes();
  results.streamMessages = product.stream.messages();
  results.streamFailure = product.stream.failure();
  product.stream.close();
  await product.server.stop();
}

/** Where the time of the server goes at full load. The profiler costs a tenth of the rate, so nothing is judged. */
async function profile(options: Options, receiver: Receiver, dataDir: string, folder: string): Promise<number> {
  const { server, stream } = await prepareProduct(options, receiver, dataDir);
  const result = await runPhase(server, receiver, fullLoad("profiled", options));
  const measuredUntilUs = nowUs() - result.drainSeconds * 1e6;
  say(phaseLine("profiled", result));
  stream.close();
  await server.stop();
  const toMs = (nowUs() - measuredUntilUs) / 1000;
  say(await sumUpProfile(folder, { fromMs: toMs + result.seconds * 1000, toMs }));
  return 0;
}

async function prepareProduct({ source, profileDir }: Options, receiver: Receiver, dataDir: string) {
  if (profileDir !== undefined) mkdirSync(profileDir, { recursive: true });
  const server = await startProduct({
    dataDir,
    source,
    profileDir: profileDir === undefined ? undefined : resolve(profileDir),
  });
  const api = createApi(server.port);
  const startedUs = nowUs();
  const tenants = await createTenants(api, dataDir, [receiver.port]);
  const [first] = tenants;
  if (first === undefined) throw new Error("No tenant was created.");
  const stream = await openStream(api, first.session);
  await proveEverythingIsOn(api, first, receiver);
  say(`postrider     ready with ${tenants.length} tenants after ${((nowUs() - startedUs) / 1e6).toFixed(1)} s`);
  const apiKeys = tenants.map(({ apiKey }) => apiKey);
  return { server: { ...server, apiKeys }, stream };
}
