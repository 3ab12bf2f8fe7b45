import { parseArgs } from "node:util";
import { makeFolder, runBench, sayBars, sharedOptions } from "./command.ts";
import { nowUs } from "./event.ts";
import { asFastAsPossible, windowEvents } from "./generator.ts";
import { type HttpsHosts, httpsPayloadBytes, startHttpsHosts } from "./https-hosts.ts";
import { type HttpsResult, httpsLines, judgeHttps, readConnections } from "./https-report.ts";
import { describeSurroundings } from "./machine.ts";
import { seedNeighbourhood } from "./neighbours.ts";
import { positive } from "./options.ts";
import { say } from "./output.ts";
import { runPhase } from "./phase.ts";
import { machineLines } from "./report.ts";
import { type Server, startProduct } from "./servers.ts";

/**
 * `bun run bench:https`: Postrider delivering to many HTTPS hosts, each with a name, a port and a certificate of its own,
 * verified, so that no connection and no TLS session serves two of them.
 *
 *   this process: one connection for each tenant ──POST /v1/ingest──▶ server (a child) ──TLS──▶ receivers (a child)
 *        ▲                                                                                          │
 *        └──────────────────────────── which events have come ──────────────────────────────────────┘
 *
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
  const server = await startProduct({ dataDir: folder, source: options.source, env: hosts.env });
  const result = await measure(options, { ...server, apiKeys }, hosts);
  await server.stop();
  await hosts.stop();

  say(httpsLines(result));
  const bars = judgeHttps(result);
  say("");
  return sayBars(bars, options.gate);
}

async function measure({ seconds, warmupSeconds }: Options, server: Server, hosts: HttpsHosts): Promise<HttpsResult> {
  const edges: { atUs: number; cpu: number; connections: Promise<ReturnType<typeof readConnections>> }[] = [];
  const phase = await runPhase({ ...server, size: httpsPayloadBytes }, hosts, {
    label: "https",
    pace: () => asFastAsPossible,
    warmupSeconds,
    seconds,
    atEdge() {
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
