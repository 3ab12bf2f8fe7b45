import { createLedgerFigures, type Ledger, type LedgerFigures } from "../rig/ledger.ts";
import { createReplayFigures, type ReplayFigures } from "./replays.ts";

/** What a crash test has counted. */
export interface CrashFigures extends LedgerFigures, Cast {
  cycles: number;
  /** Servers killed before they listened. */
  killedStarting: number;
  /** Events and event records that are there in the end. */
  stored: number;
  records: number;
  /** Records that end FAILED, as they must, because their webhook refuses everything. */
  failed: number;
  /** Requests whose answer a crash has swallowed, and how many of them are stored all the same. */
  unanswered: number;
  unansweredStored: number;
  verifiedSignatures: number;
  /** Attempts that arrived and are in no record: they were under way at a crash. */
  unrecordedAttempts: number;
  /** Most duplicates that one crash has caused. */
  worstDuplicates: number;
  /** How many attempts can be under way at once. */
  mostInFlight: number;
  replays: ReplayFigures;
  /** From the start of a process to its listening. */
  restartMs: number[];
  backend: string;
}

/** Who takes part in a round. */
export interface Cast {
  readonly accounts: number;
  readonly webhooks: number;
  readonly clients: number;
}

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
    worstDuplicates: 0,
    mostInFlight: cast.webhooks * webhookConcurrency,
    replays: createReplayFigures(),
    restartMs: [],
    backend: "",
  };
}

/** Adds a round that has ended. A crash that has caused more duplicates than attempts can be under way is a fault. */
export function addRound(figures: CrashFigures, ledger: Ledger, replays: ReplayFigures): void {
  add(figures, ledger.figures);
  add(figures.replays, replays);
  for (const { fate, events } of ledger.requests) {
    if (fate !== "open") continue;
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
