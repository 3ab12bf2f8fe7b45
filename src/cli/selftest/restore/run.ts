import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { type Clock, sleep } from "../../../lib/clock.ts";
import { createRandom, fork } from "../../../lib/random.ts";
import { operatorTokenFile } from "../../../secrets.ts";
import { examineStore } from "../../../store/open.ts";
import { createRunOwn } from "../../run-own.ts";
import { type Account, createApi, type Manner, openAccount } from "../rig/account.ts";
import { countIn, whenSettled } from "../rig/audit.ts";
import type { Trial } from "../rig/conduct.ts";
import {
  createFaults,
  createLedger,
  createLedgerFigures,
  type Ledger,
  type LedgerFigures,
  noteFault,
} from "../rig/ledger.ts";
import { type Server, startServer } from "../rig/server.ts";
import { startSwitchboard } from "../rig/switchboard.ts";
import { createTraffic } from "../rig/traffic.ts";
import { auditRestored } from "./audit.ts";

/** What is done to the server; the report prints it alongside the figures. */
export const restoreSettings = {
  /** The backup begins this long after the first event was acknowledged. */
  shortestLifeMs: 20,
  longestLifeMs: 500,
  /** In half of the cycles the server is killed while the backup is made, at most this long after it began. */
  killedDuringShare: 0.5,
  killedWithinMs: 300,
  /** Acknowledged deliveries of an account that may be on their way before its clients wait. */
  window: 200,
  webhookConcurrency: 16,
  retrySchedule: "100ms,300ms,1s,2s",
} as const;

const roles: readonly { manners: readonly Manner[]; clients: number; batches: boolean }[] = [
  { manners: ["steady", "unsteady", "refusing"], clients: 4, batches: true },
  { manners: ["steady", "slow"], clients: 3, batches: false },
];

export interface RestoreFigures extends LedgerFigures {
  cycles: number;
  /** Kills during a backup. */
  killedDuring: number;
  /** Events acknowledged before the backups began: these must be there. */
  owed: number;
  /** Events in the backups. */
  restored: number;
  /** Deliveries pending in the backups. */
  pending: number;
  records: number;
  verifiedSignatures: number;
  backupMs: number[];
  restoreMs: number[];
  backupBytes: number;
  backend: string;
}

export interface RestoreOptions {
  readonly cycles: number;
  readonly seed: number;
  readonly folder: string;
  readonly clock: Clock;
  onProgress(figures: RestoreFigures): void;
}

/**
 * Backs up a server at random moments while clients send and webhooks receive, kills it, restores the backup elsewhere and
 * starts a server there: what was acknowledged before the backup began must be there, and end in the one state it has to.
 */
export function createRestoreRun({ cycles, seed, folder, clock, onProgress }: RestoreOptions): Trial<RestoreFigures> {
  const faults = createFaults();
  const random = createRandom(seed);
  const switchboard = startSwitchboard(clock, fork(random), faults);
  const figures: RestoreFigures = {
    ...createLedgerFigures(),
    cycles: 0,
    killedDuring: 0,
    owed: 0,
    restored: 0,
    pending: 0,
    records: 0,
    verifiedSignatures: 0,
    backupMs: [],
    restoreMs: [],
    backupBytes: 0,
    backend: "",
  };
  const settings = {
    POSTRIDER_RETRY_SCHEDULE: restoreSettings.retrySchedule,
    POSTRIDER_WEBHOOK_CONCURRENCY: String(restoreSettings.webhookConcurrency),
    POSTRIDER_MIN_FREE_DISK: "0",
    POSTRIDER_PAYMENTS: "off",
    POSTRIDER_LOG_FORMAT: "json",
  };
  const ended = new AbortController();
  let server: Server | null = null;

  async function start(dataDir: string, ledger: Ledger): Promise<number> {
    ledger.life += 1;
    server = startServer({ dataDir, settings, clock, faults });
    return (await server.ready).port;
  }

  /** Runs a command in another process, as an operator would. @returns what it prints */
  async function command<Answer>(args: readonly string[], dataDir: string, took: number[]): Promise<Answer> {
    const startedAt = clock.monotonicMs();
    const { code, out, err } = await createRunOwn(process.env, dataDir)([...args, "--json"], ended.signal);
    took.push(clock.monotonicMs() - startedAt);
    if (code !== 0) throw new Error(`postrider ${args.join(" ")} ended with ${code}: ${err.trim()}`);
    return JSON.parse(out) as Answer;
  }

  async function openAccounts(port: number, dataDir: string, ledger: Ledger): Promise<Account[]> {
    const operatorToken = readFileSync(join(dataDir, operatorTokenFile), "utf8").trim();
    const api = createApi(`http://127.0.0.1:${port}`);
    const accounts: Account[] = [];
    for (const { manners } of roles) {
      const hooks = switchboard.newHooks(manners);
      const account = await openAccount(api, { hooks, receiverUrl: switchboard.url, operatorToken });
      switchboard.connect(account, ledger);
      accounts.push(account);
    }
    return accounts;
  }

  async function kill(): Promise<void> {
    await server?.kill();
    await switchboard.whenDrained();
  }

  async function runCycle(n: number): Promise<void> {
    const ledger = createLedger(faults);
    const [original, elsewhere] = [join(folder, `original-${n}`), join(folder, `restored-${n}`)];
    const backup = join(folder, `backup-${n}.tar.zst`);
    const port = await start(original, ledger);
    const accounts = await openAccounts(port, original, ledger);
    const clients = accounts.flatMap((account, i) => {
      const { clients: count, batches } = roles[i] ?? { clients: 0, batches: false };
      return Array.from({ length: count }, () => ({ account, batches }));
    });
    const traffic = createTraffic({
      ledger,
      clients,
      random: fork(random),
      window: restoreSettings.window,
      onRefusal: ({ account }, { startLine }) =>
        ledger.fault(`an event of ${account.id} was refused with ${startLine}`),
    });
    const { flowing, ended: silent, hangUp } = traffic.run(port);
    await flowing;
    await sleep(clock, random.between(restoreSettings.shortestLifeMs, restoreSettings.longestLifeMs));

    const owed = ledger.requests
      .filter(({ fate }) => fate === "acknowledged")
      .flatMap(({ events }) => events.flatMap(({ eventId }) => eventId ?? []));
    const dying = random.chance(restoreSettings.killedDuringShare)
      ? random.between(0, restoreSettings.killedWithinMs)
      : null;
    const making = command<{ bytes: number }>(["backup", backup], original, figures.backupMs);
    if (dying === null) await making;
    else await sleep(clock, dying);
    if (dying === null) await sleep(clock, random.between(0, restoreSettings.killedWithinMs));
    else figures.killedDuring += 1;
    await kill();
    hangUp();
    await silent;
    figures.backupBytes += (await making).bytes;

    const { pending } = await command<{ pending: number }>(["restore", backup], elsewhere, figures.restoreMs);
    const api = createApi(`http://127.0.0.1:${await start(elsewhere, ledger)}`);
    const left = await whenSettled(clock, ledger, async () => {
      // Sessions from before remain valid, because the secrets were restored, too.
      const counts = await Promise.all(accounts.map((account) => countIn(api, "PENDING", account)));
      return counts.reduce((sum, count) => sum + count, 0);
    });
    if (left > 0) ledger.fault(`${left} deliveries of the restored server no longer progress`);
    const audited = await auditRestored({ api, accounts, ledger, hooksUrl: switchboard.url, owed: new Set(owed) });
    const code = await server?.stop();
    if (code !== 0) ledger.fault(`when asked to stop, the restored server exited with ${code}`);
    await switchboard.whenDrained();
    const examined = await examineStore(elsewhere);
    for (const fault of examined.faults) noteFault(faults, fault);

    figures.backend = examined.backend;
    figures.owed += owed.length;
    figures.restored += audited.events;
    figures.records += audited.records;
    figures.pending += pending;
    figures.verifiedSignatures = switchboard.verified;
    for (const [name, count] of Object.entries(ledger.figures)) figures[name as keyof LedgerFigures] += count;
    if (faults.count > 0) return;
    for (const path of [original, elsewhere, backup]) rmSync(path, { recursive: true, force: true });
  }

  return {
    figures,
    faults,
    async run() {
      while (figures.cycles < cycles && faults.count === 0) {
        await runCycle(figures.cycles + 1);
        figures.cycles += 1;
        onProgress(figures);
      }
    },
    async end() {
      ended.abort();
      await server?.kill();
      switchboard.stop();
    },
  };
}
