import { mkdirSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { leaseMs } from "../../../../src/store/postgres/nodes.ts";
import { makeFolder, runBench, sayBars } from "../command.ts";
import { tenantCount } from "../event.ts";
import { describeSurroundings } from "../machine.ts";
import { say } from "../output.ts";
import { startReceiver } from "../receiver.ts";
import { machineLines } from "../report.ts";
import { copyOf, gigabytes, postponeBacklog, provideSeeded, sizeOf } from "./database.ts";
import { growthTable } from "./growth.ts";
import { type Load, startLoad } from "./load.ts";
import { type Options, type Part, readOptions } from "./options.ts";
import { plotGrowth } from "./plot.ts";
import { measureRescue, moveHistory } from "./postgres.ts";
import { apiKeysIn, measureReads } from "./reads.ts";
import {
  count,
  eraseLine,
  judge,
  listsLine,
  readLines,
  replayLine,
  rescueLine,
  restartLine,
  retentionLine,
  type SizeResult,
  windowLine,
} from "./report.ts";
import {
  keptMsOf,
  measureErase,
  measurePages,
  measureReplay,
  measureRestart,
  measureRetention,
  measureSearches,
  type Site,
  start,
  wait,
} from "./server-runs.ts";

/**
 * `bun run bench:scale`: what a long history costs.
 *
 *   seeded database ──copy──▶ reads at the store ─▶ restarts with a backlog ─▶ the backlog waits for a later try
 *                              ─▶ one server: ingestion alone, beside deep pages, beside searches, beside a replay, beside a deletion
 */
const monthMs = 30 * 24 * 60 * 60 * 1000;

await runBench({ name: "bench", hint: "bun run bench:scale --help", readOptions, run: bench });

async function bench(options: Options): Promise<number> {
  if (process.platform !== "linux") throw new Error("The bench reads /proc. Try: on Linux.");
  const startedMs = performance.now();
  const parent = chooseFolder(options);
  const surroundings = await describeSurroundings(parent);
  say(machineLines(surroundings));
  say(
    `settings  defaults of the server; ${options.rate} events/s of 500 bytes by ${tenantCount} accounts beside what is measured`,
  );

  const results: SizeResult[] = [];
  for (const events of options.sizes) results.push(await measureSize(options, parent, events));

  say(`\n${growthTable(results)}\n`);
  const bars = results.flatMap((result) =>
    judge(result).map((bar) => ({ ...bar, name: `${count(result.events)}: ${bar.name}` })),
  );
  const exitCode = sayBars(bars, options.gate);
  if (options.plot !== undefined) {
    writeFileSync(
      options.plot,
      plotGrowth(results, `${surroundings.machine.hardware}; ${options.rate} events/s ingested beside`),
    );
    say(`plot      ${options.plot}`);
  }
  if (options.keep) say(`kept      ${parent}`);
  say(`took      ${((performance.now() - startedMs) / 1000).toFixed(0)} s`);
  return exitCode;
}

function chooseFolder({ dataDir, keep }: Options): string {
  if (dataDir === undefined) return makeFolder(undefined, keep);
  const folder = resolve(dataDir);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  return folder;
}

async function measureSize(options: Options, parent: string, events: number): Promise<SizeResult> {
  say("");
  const { folder, history } = await provideSeeded(parent, events);
  const receiver = startReceiver();
  const copy = copyOf(folder, receiver.port);
  const postgres = options.postgres ? await moveHistory(copy.folder, parent) : undefined;
  const site: Site = { folder: copy.folder, databaseUrl: postgres?.url, source: options.source, receiver, history };
  const result: SizeResult = { events, databaseBytes: (await postgres?.bytes()) ?? sizeOf(folder) };
  const isAsked = (part: Part) => options.parts.includes(part);
  say(`${count(events)} events, ${gigabytes(result.databaseBytes)}`);

  if (isAsked("reads")) {
    result.reads = await measureReads(site, history);
    say(readLines(result.reads));
  }
  if (isAsked("restart")) {
    result.restart = await measureRestart(site, options.restarts);
    say(restartLine(result.restart));
  }
  if (postgres && isAsked("rescue")) {
    result.rescue = await measureRescue(copy.folder, options.source, postgres, leaseMs);
    say(rescueLine(result.rescue));
  }
  const besideIngestion = options.parts.filter((part) => !["reads", "restart", "rescue"].includes(part));
  if (besideIngestion.length > 0) {
    if (postgres) await postgres.postponeBacklog(Date.now() + monthMs);
    else postponeBacklog(copy.folder, Date.now() + monthMs);
    if (besideIngestion.some((part) => part !== "retention")) {
      await measureBesideIngestion(options, site, result, isAsked);
    }
    if (isAsked("retention")) await measureBesideRetention(options, site, result);
  }
  receiver.close();
  await postgres?.remove();
  copy.remove();
  return result;
}

/** A server of its own: how long it keeps what is set at its start. */
async function measureBesideRetention(options: Options, site: Site, result: SizeResult): Promise<void> {
  const apiKeys = await apiKeysIn(site, tenantCount);
  for (const keptMs of [null, keptMsOf(site.history)]) {
    const settings = keptMs === null ? {} : { POSTRIDER_RETENTION: `${keptMs}ms` };
    const server = { ...(await start(site, settings)), apiKeys };
    const load: Load = await startLoad(server, site.receiver, options.rate);
    if (keptMs !== null) {
      result.retention = await measureRetention(load, site.folder, { ...site, ...options, keptMs });
      say(retentionLine(result.retention));
    } else {
      await load.during("warming up", wait(options.warmupSeconds));
      result.aloneBeforeRetention = (await load.during("ingestion alone", wait(options.seconds))).window;
      say(windowLine("ingestion alone", result.aloneBeforeRetention));
    }
    await load.stop();
    await server.stop();
  }
}

async function measureBesideIngestion(
  options: Options,
  site: Site,
  result: SizeResult,
  isAsked: (part: Part) => boolean,
): Promise<void> {
  const apiKeys = await apiKeysIn(site, tenantCount);
  const server = { ...(await start(site)), apiKeys };
  const load: Load = await startLoad(server, site.receiver, options.rate);
  const alone = async () => (await load.during("ingestion alone", wait(options.seconds))).window;
  await load.during("warming up", wait(options.warmupSeconds));
  result.alone = await alone();
  say(windowLine("ingestion alone", result.alone));
  if (isAsked("pages")) {
    result.pages = await measurePages(server, load, site.history, options.seconds);
    say(listsLine("beside deep pages", result.pages));
  }
  if (isAsked("search")) {
    result.search = await measureSearches(server, load, options.seconds);
    say(listsLine("beside searches", result.search));
  }
  if (isAsked("replay")) {
    const isFirst = !isAsked("pages") && !isAsked("search");
    result.aloneBeforeReplay = isFirst ? result.alone : await alone();
    if (!isFirst) say(windowLine("ingestion alone", result.aloneBeforeReplay));
    result.replay = await measureReplay(server, load, site.history, options.atMostSeconds);
    say(replayLine(result.replay));
  }
  if (isAsked("erase")) {
    const { replay, alone: first } = result;
    // Beside a replay that was not watched to its end, it would not be alone.
    const isQuiet = replay === undefined || replay.delivered === replay.selected;
    result.aloneBeforeErase = isQuiet ? await alone() : (result.aloneBeforeReplay ?? first);
    if (isQuiet) say(windowLine("ingestion alone", result.aloneBeforeErase));
    result.erase = await measureErase(server, load, site.folder, options.atMostSeconds);
    say(eraseLine(result.erase));
  }
  await load.stop();
  await server.stop();
}
