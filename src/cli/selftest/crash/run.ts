import { readFileSync } from "node:fs";
import { join } from "node:path";
import { operatorTokenFile } from "../../../data-dir.ts";
import { type Clock, sleep } from "../../../lib/clock.ts";
import { createRandom, fork } from "../../../lib/random.ts";
import { examineStore } from "../../../store/open.ts";
import { type Account, type Api, createApi, logIn, type Manner, openAccount } from "../rig/account.ts";
import { auditAccount, countEnded, countIn, type Ended, whenSettled } from "../rig/audit.ts";
import type { Trial } from "../rig/conduct.ts";
import { connect } from "../rig/connection.ts";
import { statusIn } from "../rig/http-message.ts";
import { createFaults, createLedger, type Ledger, noteFault } from "../rig/ledger.ts";
import { createPayload } from "../rig/payload.ts";
import { type Server, startServer } from "../rig/server.ts";
import { startSwitchboard } from "../rig/switchboard.ts";
import { createTraffic, eventIdsIn, type Traffic, writeIngestRequest } from "../rig/traffic.ts";
import { addRound, type CrashFigures, createCrashFigures } from "./figures.ts";
import { createReplayDriver, type ReplayDriver } from "./replays.ts";

/** What is done to the server; the report prints it beside the figures. */
export const crashSettings = {
  /** The kill comes so long after the first event of a life is acknowledged, however slow the machine is. */
  shortestLifeMs: 50,
  longestLifeMs: 350,
  /** In so many cycles it comes while the server starts: at most so many times as long after its birth as it took last. */
  killedStartingShare: 0.1,
  killedStartingTimes: 1.5,
  /** So many times it comes during the very first start, at most `longestLifeMs` after its birth. */
  killedAtBirth: 3,
  /** After so many cycles all has to end and the books are compared; then other accounts go on. */
  cyclesInRound: 50,
  /** Acknowledged deliveries of an account that may be on their way before its clients wait. */
  window: 400,
  webhookConcurrency: 16,
  retrySchedule: "100ms,300ms,1s,2s,4s,8s",
} as const;

/** The accounts of a round. The history of the last one is delivered again and again. */
const cast: readonly { manners: readonly Manner[]; clients: number; batches: boolean }[] = [
  { manners: ["steady"], clients: 5, batches: true },
  { manners: ["steady", "unsteady", "refusing"], clients: 5, batches: true },
  { manners: ["steady", "unsteady", "slow"], clients: 3, batches: false },
  { manners: ["steady"], clients: 1, batches: false },
];

/**
 * Events of the account with the replays, before the first crash: so many that queueing them takes a while, in which kills
 * fall. In requests of a size that a request may have.
 */
const history = { requests: 4, events: 500 } as const;

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

interface Round {
  readonly accounts: readonly Account[];
  readonly ledger: Ledger;
  readonly traffic: Traffic;
  readonly replays: ReplayDriver;
}

/**
 * Kills the server again and again while clients send, webhooks receive and replays run, starts it again on the same
 * folder, and holds it to its promises. A seed repeats the moments of the kills and what is sent; how threads and
 * processes interleave is the machine's.
 */
export function createCrashRun({ cycles, seed, dataDir, clock, onProgress }: CrashOptions): Trial<CrashFigures> {
  const faults = createFaults();
  const random = createRandom(seed);
  const switchboard = startSwitchboard(clock, fork(random), faults);
  const figures = createCrashFigures(
    {
      accounts: cast.length,
      webhooks: cast.flatMap(({ manners }) => manners).length,
      clients: cast.reduce((sum, { clients }) => sum + clients, 0),
    },
    crashSettings.webhookConcurrency,
  );
  /** Accounts of earlier rounds, and the records they have for good. */
  const settled: { account: Account; ended: Ended }[] = [];
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

  /** After it, everything that arrives comes from the next server. */
  async function crash(victim: Server): Promise<void> {
    await victim.kill();
    await switchboard.whenDrained();
  }

  /** The first crash of a round finds its accounts a moment old. */
  async function beginRound(): Promise<Round> {
    const ledger = createLedger(faults);
    const { api, port, server: first } = await start(ledger);
    const operatorToken = readFileSync(join(dataDir, operatorTokenFile), "utf8").trim();
    const accounts: Account[] = [];
    for (const { manners } of cast) {
      const hooks = switchboard.newHooks(manners);
      const account = await openAccount(api, { hooks, receiverUrl: switchboard.url, operatorToken });
      switchboard.connect(account, ledger);
      accounts.push(account);
    }
    await sendHistory(port, ledger, accounts.at(-1) as Account);
    await crash(first);
    const clients = accounts.flatMap((account, i) => {
      const { clients: count, batches } = cast[i] ?? { clients: 0, batches: false };
      return Array.from({ length: count }, () => ({ account, batches }));
    });
    const traffic = createTraffic({
      ledger,
      clients,
      random: fork(random),
      window: crashSettings.window,
      onRefusal: ({ account }, { startLine, body }) =>
        ledger.fault(`an event of ${account.id} was refused with ${startLine}: ${body}`),
    });
    const replays = createReplayDriver(accounts.at(-1) as Account, ledger, fork(random));
    return { accounts, ledger, traffic, replays };
  }

  async function sendHistory(port: number, ledger: Ledger, account: Account): Promise<void> {
    const connection = await connect(port);
    for (let n = 0; n < history.requests; n++) {
      const payloads = Array.from({ length: history.events }, (_, i) =>
        createPayload(random, ledger.figures.sent + i + 1),
      );
      const request = ledger.add(account, payloads, writeIngestRequest(account, payloads, true, null), null);
      const answer = await connection?.send(request.bytes);
      if (!answer || statusIn(answer) !== 202) throw new Error(`a batch was answered with ${answer?.startLine}`);
      ledger.acknowledged(request, eventIdsIn(answer));
    }
    connection?.close();
  }

  async function killStarting(ledger: Ledger | null, longestMs: number): Promise<void> {
    const victim = launch(ledger);
    await Promise.race([sleep(clock, random.next() * longestMs), victim.ended]);
    await crash(victim);
    figures.killedStarting += 1;
  }

  /** The first start makes secrets and tables; what is half made must not stop the next one. */
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

  /** Lets all come to its end, and compares the books. */
  async function endRound({ accounts, ledger, traffic, replays }: Round): Promise<void> {
    const { api, port, server: last } = await start(ledger);
    await traffic.repeat(port);
    const left = await whenSettled(clock, ledger, async () => {
      const pending = await Promise.all(accounts.map((account) => countIn(api, "PENDING", account)));
      return pending.reduce((sum, count) => sum + count, await replays.unfinished(api));
    });
    if (left > 0) ledger.fault(`${left} deliveries and replays are unfinished and no longer progress`);
    for (const account of accounts) {
      const audited = await auditAccount(api, account, ledger, switchboard.url);
      settled.push({ account, ended: audited.ended });
      figures.stored += audited.eventIds.length;
      figures.records += audited.ended.DELIVERED + audited.ended.FAILED;
      figures.failed += audited.ended.FAILED;
      figures.unrecordedAttempts += audited.unrecordedAttempts;
      if (account === accounts.at(-1)) await replays.audit(api, audited.eventIds);
    }
    await crash(last);
    addRound(figures, ledger, replays.figures);
    figures.verifiedSignatures = switchboard.verified;
  }

  /** The files must be whole as the last kill has left them, and what earlier rounds have left must still be there. */
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
