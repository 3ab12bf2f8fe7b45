import { formatDuration } from "../../../lib/duration.ts";
import { percentile } from "../rig/machine.ts";
import { counted, grouped, type Pair } from "../rig/report.ts";
import type { CrashFigures } from "./figures.ts";
import { crashSettings } from "./run.ts";

/** The figures of a crash test, for people. */
export function crashPairs(figures: CrashFigures): Pair[] {
  const { shortestLifeMs, longestLifeMs, cyclesInRound, webhookConcurrency, retrySchedule, window } = crashSettings;
  const { replays, restartMs } = figures;
  return [
    [
      "Kills",
      `${grouped(figures.cycles)} with SIGKILL, ${shortestLifeMs} to ${longestLifeMs} ms after the first event of a life, ` +
        `${figures.killedStarting} of them during start-up`,
    ],
    [
      "Load",
      `${figures.clients} clients of ${figures.accounts} accounts with ${figures.webhooks} webhooks, changed every ` +
        `${cyclesInRound} kills; at most ${window} deliveries in flight per account, ${webhookConcurrency} at once ` +
        `to a webhook, retries after ${retrySchedule}`,
    ],
    [
      "Events",
      `${grouped(figures.acknowledged)} acknowledged, ${grouped(figures.stored)} stored with ` +
        `${grouped(figures.records)} records, ${grouped(figures.failed)} of them FAILED at a webhook that refuses everything`,
    ],
    [
      "Unanswered",
      `${counted(figures.unanswered, "request")} had no response when the server was killed, ` +
        `${grouped(figures.unansweredStored)} of them stored completely`,
    ],
    [
      "Repeated",
      `${counted(figures.repeatedAlike, "request")} retried under the same idempotency key, with the same ids`,
    ],
    [
      "Deliveries",
      `${grouped(figures.arrivals)} arrived, ${grouped(figures.verifiedSignatures)} with identical bytes and a valid signature`,
    ],
    [
      "Duplicates",
      `${grouped(figures.duplicates)}; ${counted(figures.unrecordedAttempts, "attempt")} interrupted by a kill; at most ` +
        `${figures.worstDuplicates} after one kill, of at most ${figures.mostInFlight} in flight`,
    ],
    [
      "Replays",
      `${replays.begun} started, ${replays.completed} completed, ${replays.interrupted} of them interrupted by a kill ` +
        `(${replays.interruptedQueueing} partly queued); they redelivered ${grouped(replays.deliveries)} records`,
    ],
    [
      "Restart",
      `listens after ${formatDuration(percentile(restartMs, 50))} (p50), ${formatDuration(Math.max(0, ...restartMs))} at most`,
    ],
  ];
}
