import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type Clock, sleep } from "../../../lib/clock.ts";
import { createRandom, fork } from "../../../lib/random.ts";
import { operatorTokenFile } from "../../../secrets.ts";
import { examineStore } from "../../../store/open.ts";
import { type Api, createApi, logIn } from "../rig/account.ts";
import { countEnded } from "../rig/audit.ts";
import type { Trial } from "../rig/conduct.ts";
import { createFaults, createLedger, type Ledger, noteFault } from "../rig/ledger.ts";
import { type Server, startServer } from "../rig/server.ts";
import { startSwitchboard } from "../rig/switchboard.ts";
import { addRound, type CrashFigures, createCrashFigures } from "./figures.ts";
import { auditRound, cast, openRound, type Round, type Settled } from "./round.ts";

/** What is done to the server; the report prints it alongside the figures. */
export const crashSettings = {
  /** The kill comes this long after the first event of a life is acknowledged, however slow the machine is. */
  shortestLifeMs: 50,
  longestLifeMs: 350,
  /** In this share of cycles it comes while the server starts: at most this many times the duration of the last start. */
  killedStartingShare: 0.1,
  killedStartingTimes: 1.5,
  /** This many times it comes during the very first start, at most `longestLifeMs` after the process is created. */
  killedAtBirth: 3,
  /** After this many cycles everything has to end and the books are compared; then other accounts take over. */
  cyclesInRound: 50,
  /** Acknowledged deliveries of an account that may be on their way before its clients wait. */
  window: 400,
  webhookConcurrency: 16,
  retrySchedule: "100ms,300ms,1s,2s,4s,8s",
} as const;

export interface CrashProgress {
  readonly cycles: number;
  readonly acknowledged: number;
  readonly delivered: number;
  readonly faults: number;
}

export interface CrashOptions {
  readonly cycles: number;
  readonly seed: number;
  readonly dataDir: string;
  readonly clock: Clock;
  /** Called after every cycle. */
  onProgress(progress: CrashProgress): void;
}

/**
 * Kills the server again and again while clients send, webhooks receive and replays run, restarts it on the same folder, and
 * holds it to its promises. A seed reproduces the moments of the kills and what is sent; how threads and processes interleave
 * is up to the machine.
 */
export function createCrashRun({ cycles, seed, dataDir, clock, onProgress }: CrashOptions): Trial<CrashFigures> {
  const faults = createFaults();
  const random = createRandom(seed);
  const switchboard = startSwitchboard(clock, fork(random), faults);
  const figures = createCrashFigures(cast, crashSettings.webhookConcurrency);
  /** Accounts of earlier rounds, and their final records. */
  const settled: Settled[] = [];
  const settings = {
    POSTRIDER_RETRY_SCHEDULE: crashSettings.retrySchedule,
    POSTRIDER_WEBHOOK_CONCURRENCY: String(crashSettings.webhookConcurrency),
    POSTRIDER_MIN_FREE_DISK: "0",
    POSTRIDER_PAYMENTS: "off",
    POSTRIDER_LOG_LEVEL: "info",
    POSTRIDER_LOG_FORMAT: "json",
  };
  let server: Server | null = null;

  function launch(ledger: Ledger | null): Server {
    if (ledger) ledger.life += 1;
    server = startServer({ dataDir, settings, clock, faults });
    return server;
  }

  async function start(ledger: Ledger | null): Promise<{ api: Api; port: number; server: Server }> {
    const launched = launch(ledger);
    const { port, afterMs } = await launched.ready;
    figures.restartMs.push(afterMs);
    return { api: createApi(`http://127.0.0.1:${port}`), port, server: launched };
  }

  /** Once it resolves, everything that arrives comes from the next server. */
  async function crash(victim: Server): Promise<void> {
    await victim.kill();
    await switchboard.whenDrained();
  }

  /** The first crash of a round comes when its accounts have only just been created. */
  async function beginRound(): Promise<Round> {
    const ledger = createLedger(faults);
    const { api, port, server: first } = await start(ledger);
    const operatorToken = readFileSync(join(dataDir, operatorTokenFile), "utf8").trim();
    const { window } = crashSettings;
    const round = await openRound({
      api,
      port,
      operatorToken,
      ledger,
      switchboard,
      random,
      window,
      outages: { excuses: () => false },
    });
    await crash(first);
    return round;
  }

  async function killStarting(ledger: Ledger | null, longestMs: number): Promise<void> {
    const victim = launch(ledger);
    await Promise.race([sleep(clock, random.next() * longestMs), victim.ended]);
    await crash(victim);
    figures.killedStarting += 1;
  }

  /** The first start creates secrets and tables; half-made ones must not stop the next start. */
  async function killAtBirth(): Promise<void> {
    while (figures.cycles < Math.min(crashSettings.killedAtBirth, cycles - 1)) {
      await killStarting(null, crashSettings.longestLifeMs);
      figures.cycles += 1;
    }
  }

  async function runCycle({ ledger, traffic, replays }: Round): Promise<void> {
    if (random.chance(crashSettings.killedStartingShare)) {
      const lastMs = figures.restartMs.at(-1) ?? 0;
      return killStarting(ledger, crashSettings.killedStartingTimes * lastMs);
    }
    const { api, port, server: victim } = await start(ledger);
    const { flowing, ended, hangUp } = traffic.run(port);
    const replaying = replays.look(api);
    const lifeMs = random.between(crashSettings.shortestLifeMs, crashSettings.longestLifeMs);
    await Promise.race([flowing, victim.ended]);
    await Promise.race([sleep(clock, lifeMs), victim.ended]);
    await crash(victim);
    hangUp();
    await Promise.all([ended, replaying]);
  }

  async function endRound(round: Round): Promise<void> {
    const { api, port, server: last } = await start(round.ledger);
    settled.push(...(await auditRound(round, { api, port, clock, hooksUrl: switchboard.url }, figures)));
    await crash(last);
    addRound(figures, round);
    figures.verifiedSignatures = switchboard.verified;
  }

  /** The files must be whole as the last kill left them, and everything from earlier rounds must still be there. */
  async function auditTheWhole(): Promise<void> {
    const { faults: found, backend } = await examineStore(dataDir);
    for (const fault of found) noteFault(faults, fault);
    figures.backend = backend;
    const { api, server: last } = await start(null);
    for (const { account, ended } of settled) {
      account.session = await logIn(api, account);
      const found = await countEnded(api, account);
      if (Bun.deepEquals(found, ended)) continue;
      noteFault(faults, `LOST: ${account.id} had ${JSON.stringify(ended)} and now has ${JSON.stringify(found)}`);
    }
    const code = await last.stop();
    if (code !== 0) noteFault(faults, `when asked to stop, the server exited with ${code}`);
  }

  return {
    figures,
    faults,
    async run() {
      await killAtBirth();
      while (figures.cycles < cycles) {
        const round = await beginRound();
        const count = Math.min(cycles - figures.cycles, crashSettings.cyclesInRound);
        for (let n = 0; n < count; n++) {
          await runCycle(round);
          figures.cycles += 1;
          onProgress({
            cycles: figures.cycles,
            acknowledged: figures.acknowledged + round.ledger.figures.acknowledged,
            delivered: figures.delivered + round.ledger.figures.delivered,
            faults: faults.count,
          });
        }
        await endRound(round);
      }
      await auditTheWhole();
    },
    async end() {
      await server?.kill();
      switchboard.stop();
    },
  };
}
