import { resolve } from "node:path";
import { SQL } from "bun";
import { endAtExit } from "../cleanup.ts";
import { makeFolder, runBench, sayBars } from "../command.ts";
import { type ControlGroup, createControlGroup } from "../control-group.ts";
import { type Database, databaseSettings, startDatabase, startNode } from "../database.ts";
import { asFastAsPossible, atRate } from "../generator.ts";
import { describeSurroundings, folderOnDisk } from "../machine.ts";
import { say } from "../output.ts";
import type { Phase } from "../phase.ts";
import { type Receiver, startReceiver } from "../receiver.ts";
import { machineLines } from "../report.ts";
import { type Loaded, load, makeAccounts, type Node, type Run, startIn } from "./cluster.ts";
import { type Measure, type Options, readOptions } from "./options.ts";
import { header, judge, type MeasuredRun, type Results, runLine, runsOf } from "./report.ts";
import { createYardstick, type Yardstick } from "./yardstick.ts";

/**
 * `bun run bench:nodes`: what more nodes on one database are worth, and what the database costs.
 *
 *   this process ──POST /v1/ingest──▶ nodes of 0.3 processors ──▶ PostgreSQL, on the same machine and with fsync
 *     (load, receiver)  ◀──POST /hook/<n>──┘
 *
 * Each of them is in a control group. All nodes live all the time, so that their code is warm; those without a load cost the
 * others nothing but their heartbeats.
 */
const nodeCount = 3;
const generatorCores = 1;
/** Of this share of its limit on, the load itself may be what is measured. */
const generatorShare = 0.85;
const warmSeconds = 8;
const pauseMs = 500;
const quietRate = 200;
const pinnedRate = 800;

await runBench({ name: "bench", hint: "bun run bench:nodes --help", readOptions, run: bench });

interface Site {
  options: Options;
  /** The database is beside our folder, which its user may not enter. */
  parent: string;
  folder: string;
  receiver: Receiver;
  groups: Groups;
}

interface Groups {
  own: ControlGroup;
  /** The database and the first node. */
  pair: ControlGroup;
  database: ControlGroup;
  nodes: readonly ControlGroup[];
  sqlite: ControlGroup;
}

async function bench(options: Options): Promise<number> {
  if (process.platform !== "linux") throw new Error("The bench needs control groups. Try: on Linux.");
  const startedMs = performance.now();
  const parent = resolve(options.dataDir ?? folderOnDisk());
  const folder = makeFolder(parent);
  say(machineLines(await describeSurroundings(folder)));
  const settings = Object.entries(databaseSettings).map(([name, value]) => `${name} ${value}`);
  say(`database  PostgreSQL 17 of the tests, fsync on, ${settings.join(", ")}, by a Unix socket`);
  say(`limits    ${options.cores} processors a node, ${generatorCores} the load and its receiver, none the database\n`);

  const site = { options, parent, folder, receiver: startReceiver(), groups: makeGroups() };
  const results: Results = {};
  const isAsked = (measure: Measure) => options.only.includes(measure);
  say(header);
  await measureOnPostgres(site, results, isAsked);
  site.receiver.close();

  const bars = judge(results);
  say("");
  for (const warning of warnings(results)) say(warning);
  const exitCode = sayBars(bars, options.gate);
  say(`took      ${((performance.now() - startedMs) / 1000).toFixed(0)} s`);
  return exitCode;
}

function makeGroups(): Groups {
  const all = createControlGroup({ cpu: true });
  if (all === null) throw new Error("No control group may be made here. Try: as root.");
  const own = all.within("load");
  const pair = all.within("pair");
  const database = pair.within("database");
  const nodes = Array.from({ length: nodeCount }, (_, i) => (i === 0 ? pair : all).within(`node-${i + 1}`));
  const sqlite = all.within("sqlite");
  // Those within others first. After the children, which end a moment after they are killed.
  endAtExit(() => {
    for (const group of [own, database, ...nodes, pair, sqlite, all]) group.remove();
  });
  own.add(process.pid);
  own.limitCores(generatorCores);
  return { own, pair, database, nodes, sqlite };
}

async function measureOnPostgres(site: Site, results: Results, isAsked: (measure: Measure) => boolean): Promise<void> {
  const { options, parent, folder, receiver, groups } = site;
  const database = await startIn(groups.database, groups.own, () => startDatabase(parent));
  const nodes: Node[] = [];
  for (const [i, group] of groups.nodes.entries()) {
    if (i > 0 && !isAsked("ratio")) break;
    const wish = { folder, name: `node-${i + 1}`, source: options.source, databaseUrl: database.url };
    nodes.push({ group, server: await startIn(group, groups.own, () => startNode(wish)) });
  }
  const [first] = nodes as [Node];
  const apiKeys = await makeAccounts(first.server, `${folder}/node-1`, receiver);
  const loaded = (count: number): Loaded => ({
    nodes: nodes.slice(0, count),
    idle: nodes.slice(count),
    apiKeys,
    database: groups.database,
  });
  await run(site, "warming up", loaded(nodes.length), { seconds: warmSeconds });

  if (isAsked("ratio")) {
    const yardstick = await createYardstick(database.server, nodeCount);
    results.ratio = await measureRatio(site, loaded, yardstick);
    await yardstick.close();
  }
  for (const { server } of nodes.splice(1)) await server.stop();
  if (isAsked("latency")) results.latency = await measureLatency(site, loaded(1));
  if (isAsked("sqlite")) results.sqlite = await measureBesideSqlite(site, loaded(1));
  if (isAsked("horizon")) results.horizon = await measureHorizon(site, loaded(1), database);
  await first.server.stop();
  await database.server.remove();
}

type Given = Partial<Pick<Phase, "pace" | "seconds" | "warmupSeconds">>;

async function run(site: Site, label: string, loaded: Loaded, given: Given = {}): Promise<Run> {
  const { seconds, warmupSeconds } = site.options;
  await Bun.sleep(pauseMs);
  const result = await load(loaded, site.receiver, {
    label,
    pace: () => asFastAsPossible,
    seconds,
    warmupSeconds,
    ...given,
  });
  say(runLine(label, result));
  return result;
}

/** In each round one, two and three nodes; in every other round the other way round, as a machine may slow down. */
async function measureRatio(
  site: Site,
  loaded: (count: number) => Loaded,
  yardstick: Yardstick,
): Promise<MeasuredRun[][]> {
  const { rounds, cores, seconds } = site.options;
  for (const group of site.groups.nodes) group.limitCores(cores);
  const runs: MeasuredRun[][] = site.groups.nodes.map(() => []);
  for (let round = 1; round <= rounds; round++) {
    const counts = runs.map((_, i) => i + 1);
    for (const count of round % 2 === 1 ? counts : counts.toReversed()) {
      const label = `${count} node${count === 1 ? "" : "s"}, round ${round}`;
      const measured = await run(site, label, loaded(count));
      const { rate, batch } = measured;
      const yardstickUs = await yardstick.measure({ nodes: count, rate, batch, seconds: seconds / 2 });
      say(`${"  bare statements".padEnd(22)}${yardstickUs.toFixed(0)} µs/event of the database`);
      runs[count - 1]?.push({ ...measured, yardstickUs });
    }
  }
  for (const group of site.groups.nodes) group.limitCores(null);
  return runs;
}

async function measureLatency(site: Site, loaded: Loaded): Promise<NonNullable<Results["latency"]>> {
  const found: NonNullable<Results["latency"]> = { free: [], limited: [] };
  const pace = (startUs: number) => atRate(quietRate, startUs);
  const { rounds, cores } = site.options;
  const [group] = site.groups.nodes;
  for (let round = 1; round <= rounds; round++) {
    found.free.push(await run(site, `${quietRate}/s, round ${round}`, loaded, { pace }));
  }
  group?.limitCores(cores);
  for (let round = 1; round <= rounds; round++) {
    found.limited.push(await run(site, `  of ${cores} cores, ${round}`, loaded, { pace }));
  }
  group?.limitCores(null);
  return found;
}

async function measureBesideSqlite(site: Site, postgres: Loaded): Promise<NonNullable<Results["sqlite"]>> {
  const { options, folder, receiver, groups } = site;
  const wish = { folder, name: "sqlite", source: options.source };
  const server = await startIn(groups.sqlite, groups.own, () => startNode(wish));
  const apiKeys = await makeAccounts(server, `${folder}/sqlite`, receiver);
  const sqlite: Loaded = { nodes: [{ server, group: groups.sqlite }], apiKeys, database: null };
  await run(site, "warming up, SQLite", sqlite, { seconds: warmSeconds });
  for (const group of [groups.pair, groups.sqlite]) group.limitCores(options.pairCores);
  const runs: NonNullable<Results["sqlite"]> = { sqlite: [], postgres: [] };
  for (let round = 1; round <= options.rounds; round++) {
    runs.sqlite.push(await run(site, `SQLite, round ${round}`, sqlite));
    runs.postgres.push(await run(site, `PostgreSQL, round ${round}`, postgres));
  }
  groups.pair.limitCores(null);
  await server.stop();
  return runs;
}

async function measureHorizon(site: Site, loaded: Loaded, { url }: Database): Promise<NonNullable<Results["horizon"]>> {
  const { rounds, cores, horizonSeconds } = site.options;
  site.groups.nodes[0]?.limitCores(cores);
  const full = async (label: string) => {
    const runs: Run[] = [];
    for (let round = 1; round <= rounds; round++) runs.push(await run(site, `${label}, round ${round}`, loaded));
    return runs;
  };
  const before = await full("before");
  const holder = new SQL(url, { max: 1 });
  const held = await holder.reserve();
  try {
    await held.unsafe("begin isolation level repeatable read");
    await held.unsafe("select count(*) from tenant");
    const startedMs = performance.now();
    const pace = (startUs: number) => atRate(pinnedRate, startUs);
    const during = await run(site, `held open, ${pinnedRate}/s`, loaded, { pace, seconds: horizonSeconds });
    const pinned = await full("held open");
    const heldSeconds = (performance.now() - startedMs) / 1000;
    const namedSeconds = await readOldestSnapshot(loaded);
    return { before, during, pinned, heldSeconds, namedSeconds };
  } finally {
    held.release();
    await holder.close({ timeout: 0 });
    site.groups.nodes[0]?.limitCores(null);
  }
}

async function readOldestSnapshot({ nodes: [node] }: Loaded): Promise<number> {
  const text = await (await fetch(`http://127.0.0.1:${node?.server.port}/metrics`)).text();
  return Number(/^postrider_database_oldest_snapshot_seconds (.+)$/m.exec(text)?.[1] ?? 0);
}

/** What makes the figures worth less. */
function warnings(results: Results): string[] {
  const runs = runsOf(results);
  const busiest = Math.max(...runs.map((one) => one.generatorCores));
  const strays = runs.reduce((sum, one) => sum + one.strays, 0);
  const found: string[] = [];
  if (busiest > generatorShare * generatorCores) {
    found.push(
      `NOTE: load generator and receiver used ${busiest.toFixed(2)} of ${generatorCores}: they may be the limit.`,
    );
  }
  if (strays > 0) found.push(`NOTE: nodes without a load delivered ${strays} events.`);
  return found;
}
