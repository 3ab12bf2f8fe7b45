import { createLedgerFigures, type LedgerFigures } from "../rig/ledger.ts";
import { createReplayFigures, type ReplayFigures } from "./replays.ts";
import type { AuditFigures, Cast, Round } from "./round.ts";

/** What a crash test counts. */
export interface CrashFigures extends LedgerFigures, AuditFigures, Cast {
  cycles: number;
  /** Servers killed before they listened. */
  killedStarting: number;
  /** Requests whose answer was lost in a crash, and how many of them are stored all the same. */
  unanswered: number;
  unansweredStored: number;
  verifiedSignatures: number;
  /** Most duplicates caused by a single crash. */
  worstDuplicates: number;
  /** How many attempts can be under way at the same time. */
  mostInFlight: number;
  replays: ReplayFigures;
  /** From the start of a process until it listens. */
  restartMs: number[];
  backend: string;
}

/** What a crash test of several nodes counts in addition. */
export interface NodesFigures extends CrashFigures {
  readonly nodes: number;
  kills: number;
  freezes: number;
  /** Freezes long enough for a lease to run out. */
  longFreezes: number;
  databaseKills: number;
  cuts: number;
  /** Webhooks whose removal was answered while a mishap was under way. */
  removals: number;
  /** Events of accounts whose quota ran out in the race across all nodes: acknowledged, and without an answer. */
  quotaAccepted: number;
  quotaUnanswered: number;
  /** From the death of nodes until everything that was on its way then has ended. */
  takeoverMs: number[];
}

export const createNodesFigures = (cast: Cast, webhookConcurrency: number, nodes: number): NodesFigures => ({
  ...createCrashFigures(cast, webhookConcurrency * nodes),
  nodes,
  kills: 0,
  freezes: 0,
  longFreezes: 0,
  databaseKills: 0,
  cuts: 0,
  removals: 0,
  quotaAccepted: 0,
  quotaUnanswered: 0,
  takeoverMs: [],
});

export function createCrashFigures(cast: Cast, webhookConcurrency: number): CrashFigures {
  return {
    ...cast,
    ...createLedgerFigures(),
    cycles: 0,
    killedStarting: 0,
    stored: 0,
    records: 0,
    failed: 0,
    unanswered: 0,
    unansweredStored: 0,
    verifiedSignatures: 0,
    unrecordedAttempts: 0,
    lateAttempts: 0,
    worstDuplicates: 0,
    mostInFlight: cast.webhooks * webhookConcurrency,
    replays: createReplayFigures(),
    restartMs: [],
    backend: "",
  };
}

/** Adds a round that has ended. A crash that causes more duplicates than attempts can be under way is a fault. */
export function addRound(figures: CrashFigures, { accounts, ledger, replays }: Round): void {
  add(figures, ledger.figures);
  add(figures.replays, replays.figures);
  for (const { account, fate, events } of ledger.requests) {
    if (fate !== "open" || !accounts.includes(account)) continue;
    figures.unanswered += 1;
    figures.unansweredStored += events.every(({ eventId }) => eventId !== null) ? 1 : 0;
  }
  for (const count of ledger.duplicatesByLife.values()) {
    figures.worstDuplicates = Math.max(figures.worstDuplicates, count);
    if (count > figures.mostInFlight) {
      ledger.fault(`a crash caused ${count} duplicates, but at most ${figures.mostInFlight} attempts can be in flight`);
    }
  }
}

function add<Counts extends Record<keyof Counts, number>>(sum: Counts, more: Counts): void {
  for (const name of Object.keys(more) as (keyof Counts)[]) {
    sum[name] = (sum[name] + more[name]) as Counts[keyof Counts];
  }
}
