import { formatDuration } from "../../../lib/duration.ts";
import { count, counted } from "../../count.ts";
import type { Plan } from "../rig/conduct.ts";
import { percentile } from "../rig/machine.ts";
import type { Pair } from "../rig/report.ts";
import type { CrashFigures, NodesFigures } from "./figures.ts";
import { nodesSettings } from "./nodes-run.ts";
import { crashSettings } from "./run.ts";

/** The figures of a crash test, for people. */
export function crashPairs(figures: CrashFigures): Pair[] {
  const { shortestLifeMs, longestLifeMs, cyclesInRound, webhookConcurrency, retrySchedule, window } = crashSettings;
  const { replays, restartMs } = figures;
  return [
    [
      "Kills",
      `${count(figures.cycles)} with SIGKILL, ${shortestLifeMs} to ${longestLifeMs} ms after the first event of a life, ` +
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
      `${count(figures.acknowledged)} acknowledged, ${count(figures.stored)} stored with ` +
        `${count(figures.records)} records, ${count(figures.failed)} of them FAILED at a webhook that refuses everything`,
    ],
    [
      "Unanswered",
      `${counted(figures.unanswered, "request")} had no response when the server was killed, ` +
        `${count(figures.unansweredStored)} of them stored completely`,
    ],
    [
      "Repeated",
      `${counted(figures.repeatedAlike, "request")} retried under the same idempotency key, with the same ids`,
    ],
    [
      "Deliveries",
      `${count(figures.arrivals)} arrived, ${count(figures.verifiedSignatures)} with identical bytes and a valid signature`,
    ],
    [
      "Duplicates",
      `${count(figures.duplicates)}; ${counted(figures.unrecordedAttempts, "attempt")} interrupted by a kill; at most ` +
        `${figures.worstDuplicates} after one kill, of at most ${figures.mostInFlight} in flight`,
    ],
    [
      "Replays",
      `${replays.begun} started, ${replays.completed} completed, ${replays.interrupted} of them interrupted by a kill ` +
        `(${replays.interruptedQueueing} partly queued); they redelivered ${count(replays.deliveries)} records`,
    ],
    [
      "Restart",
      `listens after ${formatDuration(percentile(restartMs, 50))} (p50), ${formatDuration(Math.max(0, ...restartMs))} at most`,
    ],
  ];
}

/** The figures of a crash test of several nodes, for people. */
function nodesPairs(figures: NodesFigures): Pair[] {
  const { kills, freezes, longFreezes, databaseKills, cuts, takeoverMs } = figures;
  const alike = crashPairs(figures).filter(([name]) => !onlyOfOne.includes(name));
  return [
    [
      "Mishaps",
      `${count(figures.cycles)} cycles with ${figures.nodes} nodes: ${counted(kills, "node")} killed, ` +
        `${counted(freezes, "pause")} of 1 to 25 s (${longFreezes} of more than 9 s), ` +
        `${counted(databaseKills, "crash", "crashes")} of the database, ${counted(cuts, "connection")} cut`,
    ],
    [
      "Load",
      `${figures.clients} clients of ${figures.accounts} accounts with ${figures.webhooks} webhooks, changed every ` +
        `${nodesSettings.cyclesInRound} cycles; ${nodesSettings.webhookConcurrency} deliveries at once to a webhook`,
    ],
    ...alike,
    [
      "Leases",
      `${counted(figures.lateAttempts, "attempt")} recorded beside another one of the same delivery, since a node stood still; ` +
        `${count(figures.overlaps)} began while another one was under way`,
    ],
    [
      "Takeover",
      `after ${formatDuration(percentile(takeoverMs, 50))} (p50), ${formatDuration(Math.max(0, ...takeoverMs))} at most, ` +
        "all that was on its way at a kill had gone on",
    ],
    [
      "Quota",
      `exact to the event: ${count(figures.quotaAccepted)} events acknowledged by all nodes at once, ` +
        `${count(figures.quotaUnanswered)} without a response`,
    ],
    ["Removals", `${counted(figures.removals, "webhook")} removed during mishaps, and nothing came to them afterwards`],
  ];
}

const onlyOfOne: readonly string[] = ["Kills", "Load"];

export interface NodesPlanOptions extends Pick<Plan<NodesFigures>, "seed" | "folder" | "command" | "trial"> {
  readonly cycles: number;
}

export const nodesPlan = ({ cycles, ...rest }: NodesPlanOptions): Plan<NodesFigures> => ({
  title: "Crash test of several nodes",
  ...rest,
  settings: nodesSettings,
  verdict: ({ acknowledged }) =>
    `Nothing was lost: ${counted(acknowledged, "acknowledged event")}, ${counted(cycles, "cycle")}.`,
  pairs: nodesPairs,
});
