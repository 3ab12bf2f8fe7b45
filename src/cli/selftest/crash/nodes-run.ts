import { appendFileSync } from "node:fs";
import { join } from "node:path";
import { StartupError } from "../../../domain/errors.ts";
import { type Clock, sleep } from "../../../lib/clock.ts";
import { messageOf } from "../../../lib/error-message.ts";
import { formatIso } from "../../../lib/iso-time.ts";
import { createRandom, fork } from "../../../lib/random.ts";
import { logIn } from "../rig/account.ts";
import { countEnded } from "../rig/audit.ts";
import type { Trial } from "../rig/conduct.ts";
import { createFaults, createLedger, noteFault } from "../rig/ledger.ts";
import { startSwitchboard } from "../rig/switchboard.ts";
import { addRound, createNodesFigures, type NodesFigures } from "./figures.ts";
import { createMishaps } from "./mishaps.ts";
import { apiOf, createNodes, type TestNode } from "./nodes.ts";
import { createOutages } from "./outages.ts";
import { runQuotaRace } from "./quota-race.ts";
import { watchRemoval } from "./removal.ts";
import { auditRound, cast, openRound, type Round, type Settled } from "./round.ts";
import { type CrashProgress, crashSettings } from "./run.ts";
import type { SharedDatabase } from "./shared-database.ts";

/** What is done to the nodes; the report prints it alongside the figures. */
export const nodesSettings = {
  ...crashSettings,
  /** After this many cycles everything must continue and end, which takes a lease and more. */
  cyclesInRound: 10,
  /** Time between two mishaps; most of what the last one affected is still on its way at the next. */
  shortestCycleMs: 1_000,
  longestCycleMs: 4_000,
  /** The share of cycles in which a webhook is removed. */
  removalShare: 0.4,
  window: 200,
  /** The longest time a slow webhook takes to answer. */
  slowestMs: 250,
  /** Clients send as fast as they can before a mishap, and with pauses of this length during it. */
  shortestPauseMs: 200,
  longestPauseMs: 800,
} as const;

/** File in the test's folder: what was done, and when. */
const journalFile = "mishaps.log";

export interface NodesRunOptions {
  readonly nodes: number;
  readonly database: SharedDatabase;
  readonly cycles: number;
  readonly seed: number;
  readonly folder: string;
  readonly clock: Clock;
  /** See `MishapsOptions`. @default none */
  readonly graceMs?: number;
  /** See `ServerOptions`. */
  readonly program?: readonly string[];
  /** Called after every cycle. */
  onProgress(progress: CrashProgress): void;
}

/**
 * Several servers on one database: some are killed, frozen or cut off from their database while the clients carry on with the
 * others. In every round one node is spared, so that there is always one to take over.
 */
export function createNodesRun(options: NodesRunOptions): Trial<NodesFigures> {
  const { nodes: count, database, cycles, seed, folder, clock, graceMs = 0, program, onProgress } = options;
  const faults = createFaults();
  const random = createRandom(seed);
  const switchboard = startSwitchboard(clock, fork(random), faults, nodesSettings);
  const figures = createNodesFigures(cast, nodesSettings.webhookConcurrency, count);
  figures.backend = "PostgreSQL";
  const settled: Settled[] = [];
  const settings = {
    POSTRIDER_RETRY_SCHEDULE: nodesSettings.retrySchedule,
    POSTRIDER_WEBHOOK_CONCURRENCY: String(nodesSettings.webhookConcurrency),
    POSTRIDER_MIN_FREE_DISK: "0",
    POSTRIDER_PAYMENTS: "off",
    POSTRIDER_LOG_LEVEL: "info",
    POSTRIDER_LOG_FORMAT: "json",
  };
  const outages = createOutages(clock);
  const nodes = createNodes({
    count,
    folder,
    databaseUrl: database.url,
    settings,
    clock,
    faults,
    isExpected: outages.isExpected,
    ...(program && { program }),
  });
  let isBusy = false;

  const pick = () => random.pick(nodes.listening() as [TestNode, ...TestNode[]]);
  const pickPort = () => (nodes.listening().length > 0 ? pick().port : null);
  const pauseMs = () => (isBusy ? 0 : random.between(nodesSettings.shortestPauseMs, nodesSettings.longestPauseMs));

  function beginRound(): Promise<Round> {
    const ledger = createLedger(faults);
    ledger.life = 1;
    const { window } = nodesSettings;
    const first = pick();
    const { operatorToken } = nodes;
    const place = { api: apiOf(first), port: first.port ?? 0, operatorToken };
    return openRound({ ...place, ledger, switchboard, outages, random, window });
  }

  /** Each cycle is a mishap; they overlap. The last one is a death, whose takeover is timed. */
  async function runRound({ accounts, ledger, traffic, replays }: Round, some: number): Promise<void> {
    const roaming = traffic.roam({ clock, pickPort, pauseMs });
    const [survivor, ...victims] = shuffled(nodes.all);
    const mishaps = createMishaps({
      victims,
      database: database.mishaps,
      accounts,
      ledger,
      roaming,
      figures,
      outages,
      random: fork(random),
      clock,
      graceMs,
      tell: (text) => appendFileSync(join(folder, journalFile), `${formatIso(clock.now())} ${text}\n`),
    });
    const race = runQuotaRace(nodes, { ledger, outages, random: fork(random), clock });
    const removals: Promise<boolean>[] = [];
    let looking: Promise<void> = Promise.resolve();
    for (let n = 0; n < some; n++) {
      isBusy = true;
      await sleep(clock, random.between(nodesSettings.shortestLifeMs, nodesSettings.longestLifeMs));
      if (random.chance(nodesSettings.removalShare)) {
        removals.push(watchRemoval(nodes, { ledger, switchboard, outages, random: fork(random), clock }));
      }
      await (n < some - 1 ? mishaps.happen() : mishaps.die());
      isBusy = false;
      looking = looking.then(() => replays.look(apiOf(survivor ?? pick())));
      await sleep(clock, random.between(nodesSettings.shortestCycleMs, nodesSettings.longestCycleMs));
      figures.cycles += 1;
      onProgress({
        cycles: figures.cycles,
        acknowledged: figures.acknowledged + ledger.figures.acknowledged,
        delivered: figures.delivered + ledger.figures.delivered,
        faults: faults.count,
      });
    }
    await mishaps.whenOver();
    await looking;
    for (const isAnswered of await Promise.all(removals)) figures.removals += isAnswered ? 1 : 0;
    await roaming.stop();
    const { accepted, unanswered } = await race.end(apiOf(survivor ?? pick()));
    figures.quotaAccepted += accepted;
    figures.quotaUnanswered += unanswered;
  }

  function shuffled(all: readonly TestNode[]): TestNode[] {
    return all
      .map((node) => ({ node, at: random.next() }))
      .sort((a, b) => a.at - b.at)
      .map(({ node }) => node);
  }

  /** @throws StartupError when the database is not one for a test */
  async function startAll(): Promise<void> {
    for (const node of nodes.all) {
      try {
        figures.restartMs.push(await node.start());
      } catch (error) {
        if (node !== nodes.all[0]) throw error;
        const said = messageOf(error);
        const [reason] = said.replace(/^.*?postrider: /s, "").split(" Try: ");
        throw new StartupError(`${reason} Try: name an empty database of a running PostgreSQL with --database-url`);
      }
    }
  }

  async function endRound(round: Round): Promise<void> {
    const last = pick();
    const place = { api: apiOf(last), port: last.port ?? 0, clock, hooksUrl: switchboard.url };
    settled.push(...(await auditRound(round, place, figures)));
    addRound(figures, round);
    figures.verifiedSignatures = switchboard.verified;
  }

  async function auditTheWhole(): Promise<void> {
    for (const { account, ended } of settled) {
      const api = apiOf(pick());
      account.session = await logIn(api, account);
      const found = await countEnded(api, account);
      if (Bun.deepEquals(found, ended)) continue;
      noteFault(faults, `LOST: ${account.id} had ${JSON.stringify(ended)} and now has ${JSON.stringify(found)}`);
    }
    const codes = await Promise.all(nodes.all.map((node) => node.stop()));
    for (const code of codes) if (code !== 0) noteFault(faults, `when asked to stop, a server exited with ${code}`);
  }

  return {
    figures,
    faults,
    async run() {
      await startAll();
      while (figures.cycles < cycles) {
        const round = await beginRound();
        await runRound(round, Math.min(cycles - figures.cycles, nodesSettings.cyclesInRound));
        await endRound(round);
      }
      await auditTheWhole();
    },
    async end() {
      await nodes.end();
      switchboard.stop();
    },
  };
}
