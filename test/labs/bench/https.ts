import { parseArgs } from "node:util";
import { makeFolder, runBench, sayBars, sharedOptions } from "./command.ts";
import { nowUs } from "./event.ts";
import { asFastAsPossible, atRate, windowEvents } from "./generator.ts";
import { type HttpsHosts, httpsPayloadBytes, startHttpsHosts } from "./https-hosts.ts";
import { type HttpsResult, httpsLines, judgeHttps, readConnections } from "./https-report.ts";
import { describeSurroundings } from "./machine.ts";
import { seedNeighbourhood } from "./neighbours.ts";
import { positive } from "./options.ts";
import { say } from "./output.ts";
import { type PhaseResult, runPhase } from "./phase.ts";
import { machineLines, phaseLine } from "./report.ts";
import { type Server, startProduct, startRelay } from "./servers.ts";
import { watchedThreads } from "./threads.ts";

/**
 * `bun run bench:https`: Postrider delivering to many HTTPS hosts, each with a name, a port and a certificate of its own,
 * verified, so that no connection and no TLS session serves two of them.
 *
 *   this process: one connection for each tenant ──POST /v1/ingest──▶ server (a child) ──TLS──▶ receivers (a child)
 *        ▲                                                                                          │
 *        └──────────────────────────── which events have come ──────────────────────────────────────┘
 *
 * Before it a bare relay with the same transport delivers to the same hosts, and after it Postrider at 80 % of its rate.
 * At most 2,000 events are sent and not yet received, so the rate is what is delivered. An arrival is noted when this process
 * has heard of it.
 */
const help = `Usage: bun run bench:https [options]

  --hosts 200         HTTPS hosts, each of a tenant of its own
  --seconds 20        measured seconds
  --warmup 10         seconds before, not measured: some 2,000 connections are made
  --source            run src/main.ts instead of dist/postrider
  --data-dir DIR      where the temporary data folder is made
  --no-gate           exit with 0 also when a bar is missed
`;

/** Before the 80 %, not measured. */
const settleSeconds = 5;

await runBench({ name: "bench:https", readOptions, run: benchHttps });

function readOptions(args: readonly string[]) {
  const { values } = parseArgs({
    args: [...args],
    options: {
      hosts: { type: "string", default: "200" },
      seconds: { type: "string", default: "20" },
      warmup: { type: "string", default: "10" },
      ...sharedOptions,
    },
  });
  if (values.help) return help;
  const hosts = positive("hosts", values.hosts);
  if (!Number.isInteger(hosts) || hosts > 1_000) throw new Error("--hosts takes a whole number, at most 1000.");
  return {
    hosts,
    seconds: positive("seconds", values.seconds),
    warmupSeconds: positive("warmup", values.warmup),
    source: values.source,
    parent: values["data-dir"],
    gate: !values["no-gate"],
  };
}

type Options = Exclude<ReturnType<typeof readOptions>, string>;

async function benchHttps(options: Options): Promise<number> {
  if (process.platform !== "linux") throw new Error("The bench reads /proc. Try: on Linux.");
  const folder = makeFolder(options.parent);
  say(machineLines(await describeSurroundings(folder)));
  say(
    `load      ${options.hosts} HTTPS hosts and tenants, payloads of ${httpsPayloadBytes} bytes, at most ${windowEvents} events under way, ${options.warmupSeconds} s of warm-up, ${options.seconds} s measured\n`,
  );

  const hosts = await startHttpsHosts(options.hosts, folder);
  const apiKeys = await seedNeighbourhood(folder, { crowd: 0, crowdUrl: () => "", backlog: 0, senders: hosts.urls });
  const bare = await measureBare(options, hosts);
  say(phaseLine("bare relay", bare));
  const server = await startProduct({ dataDir: folder, source: options.source, env: hosts.env });
  const threads = watchedThreads(server.pid);
  const result = await measure(options, { ...server, apiKeys }, hosts, threads.atEdge);
  say(httpsLines(result));
  say(threads.line());
  const most = await runPhase({ ...server, apiKeys, size: httpsPayloadBytes }, hosts, {
    label: "80 % of it",
    pace: (startUs) => atRate(0.8 * result.rate, startUs),
    warmupSeconds: Math.min(settleSeconds, options.warmupSeconds),
    seconds: options.seconds,
  });
  say(phaseLine("80 % of it", most));
  await server.stop();
  await hosts.stop();

  const bars = judgeHttps(result, bare, most);
  say("");
  return sayBars(bars, options.gate);
}

/** What a relay that stores and signs nothing delivers to the same hosts. */
async function measureBare({ seconds, warmupSeconds }: Options, hosts: HttpsHosts): Promise<PhaseResult> {
  const server = await startRelay("bare-relay.ts", 0, { urls: hosts.urls, env: hosts.env });
  const load = { label: "bare relay", pace: () => asFastAsPossible, warmupSeconds, seconds };
  const result = await runPhase({ ...server, size: httpsPayloadBytes }, hosts, load);
  await server.stop();
  return result;
}

async function measure(
  { seconds, warmupSeconds }: Options,
  server: Server,
  hosts: HttpsHosts,
  atEdge: () => void,
): Promise<HttpsResult> {
  const edges: { atUs: number; cpu: number; connections: Promise<ReturnType<typeof readConnections>> }[] = [];
  const phase = await runPhase({ ...server, size: httpsPayloadBytes }, hosts, {
    label: "https",
    pace: () => asFastAsPossible,
    warmupSeconds,
    seconds,
    atEdge() {
      atEdge();
      edges.push({ atUs: nowUs(), cpu: hosts.meter.cpuSeconds(), connections: countConnections(server.port) });
    },
  });
  const [start, end] = edges;
  if (start === undefined || end === undefined) throw new Error("Nothing was measured.");
  const [before, after] = await Promise.all([start.connections, end.connections]);
  return {
    ...phase,
    receiverCores: ((end.cpu - start.cpu) * 1e6) / (end.atUs - start.atUs),
    kept: after.kept - before.kept,
    fresh: after.fresh - before.fresh,
    peakBytes: server.meter.peakBytes(),
  };
}

async function countConnections(port: number) {
  return readConnections(await (await fetch(`http://127.0.0.1:${port}/metrics`)).text());
}
