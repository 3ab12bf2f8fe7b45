import type { ControlGroup } from "../control-group.ts";
import type { GeneratorOptions } from "../generator.ts";
import type { Meter } from "../meter.ts";
import { type Phase, type PhaseMeter, type PhaseResult, runPhase } from "../phase.ts";
import type { Receiver } from "../receiver.ts";
import type { Server } from "../servers.ts";
import { createApi, createTenants } from "../tenants.ts";

/** A server of the product in a control group of its own. */
export interface Node {
  server: Server;
  group: ControlGroup;
}

/** Runs what starts processes so that all of them begin in the group, and this process goes on in its own. */
export async function startIn<T>(group: ControlGroup, own: ControlGroup, start: () => Promise<T>): Promise<T> {
  group.add(process.pid);
  try {
    return await start();
  } finally {
    own.add(process.pid);
  }
}

/** The API keys of the accounts that send, made at this server. */
export async function makeAccounts(server: Server, dataDir: string, receiver: Receiver): Promise<string[]> {
  const tenants = await createTenants(createApi(server.port), dataDir, [receiver.port]);
  return tenants.map(({ apiKey }) => apiKey);
}

/** Of each node: more would measure how much is accepted before it is delivered. */
const windowPerNode = 500;

export interface Run extends PhaseResult {
  /** Of the nodes, for one delivered event. */
  nodeUs: number;
  /** Of the database's server; 0 without one. */
  databaseUs: number;
  databaseCores: number;
  /** Jobs in a commit, on average over the nodes. */
  batch: number;
  /** Events that nodes delivered which no load was put on. */
  strays: number;
}

export interface Loaded {
  nodes: readonly Node[];
  /** Those that share the database and get no load. */
  idle?: readonly Node[];
  apiKeys: readonly string[];
  database: Pick<ControlGroup, "cpuSeconds"> | null;
}

/** One run of the load against these nodes: every account sends to each of them, by connections of its own. */
export async function load(
  { nodes, idle = [], apiKeys, database }: Loaded,
  receiver: Receiver,
  phase: Phase,
): Promise<Run> {
  const [first] = nodes;
  if (first === undefined) throw new Error("There is no node to put a load on.");
  const of = (connection: number) => nodes[connection % nodes.length] ?? first;
  const target: GeneratorOptions & { port: number; apiKeys: readonly string[]; meter: PhaseMeter } = {
    port: first.server.port,
    apiKeys: Array.from(
      { length: apiKeys.length * nodes.length },
      (_, connection) => apiKeys[Math.floor(connection / nodes.length)] ?? "",
    ),
    tenantOf: (connection) => Math.floor(connection / nodes.length),
    portOf: (connection) => of(connection).server.port,
    window: windowPerNode * nodes.length,
    meter: meterOf(nodes),
  };
  const databaseCpu: number[] = [];
  const before = await Promise.all([...nodes, ...idle].map(readCounts));
  const result = await runPhase(target, receiver, {
    ...phase,
    atEdge: () => void databaseCpu.push(database?.cpuSeconds() ?? 0),
  });
  const after = await Promise.all([...nodes, ...idle].map(readCounts));
  const grown = (i: number, name: keyof Counts) => (after[i]?.[name] ?? 0) - (before[i]?.[name] ?? 0);
  const sum = (name: keyof Counts) => nodes.reduce((total, _, i) => total + grown(i, name), 0);
  const [from = 0, to = 0] = databaseCpu;
  const events = result.rate * result.seconds;
  return {
    ...result,
    nodeUs: result.serverUsPerEvent,
    databaseUs: ((to - from) * 1e6) / events,
    databaseCores: (to - from) / result.seconds,
    batch: sum("jobs") / sum("commits"),
    strays: idle.reduce((total, _, i) => total + grown(nodes.length + i, "delivered"), 0),
  };
}

interface Counts {
  jobs: number;
  commits: number;
  delivered: number;
}

async function readCounts({ server }: Node): Promise<Counts> {
  const text = await (await fetch(`http://127.0.0.1:${server.port}/metrics`)).text();
  const read = (name: string) => Number(new RegExp(`^${name} (.+)$`, "m").exec(text)?.[1]);
  return {
    jobs: read("postrider_commit_size_sum"),
    commits: read("postrider_commit_size_count"),
    delivered: read('postrider_delivery_attempts_total\\{outcome="delivered"\\}'),
  };
}

function meterOf(nodes: readonly Node[]): PhaseMeter {
  const sum = (read: (meter: Meter) => number) => nodes.reduce((total, { server }) => total + read(server.meter), 0);
  return {
    // Finer than the hundredths of a second in which a process's own time is told.
    cpuSeconds: () => nodes.reduce((total, { group }) => total + group.cpuSeconds(), 0),
    residentBytes: () => sum((meter) => meter.residentBytes()),
    takePhasePeak: () => sum((meter) => meter.takePhasePeak()),
  };
}
