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
        `${figures.killedStarting} of them while it starts`,
    ],
    [
      "Load",
      `${figures.clients} clients of ${figures.accounts} accounts with ${figures.webhooks} webhooks, others after every ` +
        `${cyclesInRound} kills; at most ${window} deliveries of an account on their way, ${webhookConcurrency} at once ` +
        `to a webhook, retries after ${retrySchedule}`,
    ],
    [
      "Events",
      `${grouped(figures.acknowledged)} acknowledged, ${grouped(figures.stored)} stored with ` +
        `${grouped(figures.records)} records, ${grouped(figures.failed)} of them FAILED at a webhook that wants nothing`,
    ],
    [
      "Unanswered",
      `${counted(figures.unanswered, "request")} had no answer when a kill came, ` +
        `${grouped(figures.unansweredStored)} of them stored, whole`,
    ],
    ["Repeated", `${counted(figures.repeatedAlike, "request")} under an idempotency key again, with the same ids`],
    [
      "Deliveries",
      `${grouped(figures.arrivals)} arrived, ${grouped(figures.verifiedSignatures)} with the very bytes and a valid signature`,
    ],
    [
      "Duplicates",
      `${grouped(figures.duplicates)}; ${counted(figures.unrecordedAttempts, "attempt")} cut by a kill; at most ` +
        `${figures.worstDuplicates} after one kill, where ${figures.mostInFlight} can be under way`,
    ],
    [
      "Replays",
      `${replays.begun} begun, ${replays.completed} completed, ${replays.interrupted} of them cut by a kill ` +
        `(${replays.interruptedQueueing} with a part queued); they delivered ${grouped(replays.deliveries)} records again`,
    ],
    [
      "Restart",
      `listens after ${formatDuration(percentile(restartMs, 50))} (p50), ${formatDuration(Math.max(0, ...restartMs))} at most`,
    ],
  ];
}
