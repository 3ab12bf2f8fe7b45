import type { Clock } from "../../lib/clock.ts";
import type { Account } from "../client/account.ts";
import { refusalOf } from "../client/answer.ts";
import type { Call } from "../client/call.ts";
import { ifFound } from "../client/if-found.ts";
import { pause } from "../client/patience.ts";
import type { Reply } from "../client/server.ts";
import { idInPath } from "../id-in-path.ts";
import { Interrupted } from "../interrupted.ts";
import { exitCode, type Io, signalExitCode } from "../io.ts";
import { createStyle } from "../style.ts";
import { hasEnded, hasSucceeded, progressLine, type ReplayRow, summaryOf, waitingOf } from "./progress.ts";
import { explainSkipped, waitingHints } from "./reach.ts";

const firstPauseMs = 200;
const longestPauseMs = 2_000;

export interface FollowOptions {
  io: Io;
  clock: Clock;
  json: boolean;
  /** Of a replay of one event that was just started. */
  eventId?: string;
}

/** @throws UsageError */
export const pathOf = (id: string): string => `/v1/events/replays/${idInPath(id, "postrider replay list")}`;

/** The current state of a replay. @throws StartupError */
export async function readReplay(id: string, call: Call, account: Pick<Account, "url">): Promise<Reply> {
  const reply = await call("GET", pathOf(id));
  if (reply.status === 200) return reply;
  throw refusalOf(account, reply, reply.status === 404 ? "postrider replay list" : undefined);
}

const longestTakeBackMs = 3_000;

/**
 * Cancels a replay, and waits a little for what waits to be taken back, which the server does in the background. An attempt
 * under way may take longer.
 * @throws StartupError
 */
export async function cancelReplay(id: string, { call, url, signal }: Account, clock: Clock): Promise<Reply> {
  let reply = await call("DELETE", pathOf(id));
  if (reply.status !== 200) throw refusalOf({ url }, reply, reply.status === 404 ? "postrider replay list" : undefined);
  const giveUpAt = clock.monotonicMs() + longestTakeBackMs;
  while (waitingOf(reply.json as ReplayRow) > 0 && clock.monotonicMs() < giveUpAt) {
    try {
      await pause(clock, firstPauseMs, signal);
      reply = await readReplay(id, call, { url });
    } catch {
      // Ctrl+C and outages end the waiting; it is cancelled all the same.
      break;
    }
  }
  return reply;
}

/**
 * Shows a replay's progress until it has ended, then prints how it ended. Ctrl+C stops the watching and leaves the replay
 * alone.
 * @returns 0 if everything was acknowledged
 */
export async function followReplay(id: string, account: Account, options: FollowOptions): Promise<number> {
  const { io, clock, json, eventId } = options;
  const startedAtMs = clock.monotonicMs();
  // The line is cut to the terminal's width, and style marks would count.
  const unmarked = createStyle({ isTerminal: false, env: io.env });
  const print = (reply: Reply, why?: string) =>
    io.out(json ? reply.text : summaryOf(reply.json as ReplayRow, createStyle(io), why));
  const sayWhatHolds = createTeller(account, io);
  let latest: Reply | null = null;
  try {
    for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(longestPauseMs, pauseMs * 1.5)) {
      latest = await readReplay(id, account.callPatiently, account);
      const replay = latest.json as ReplayRow;
      if (hasEnded(replay)) {
        io.progress("");
        const skipped = await ifFound(explainSkipped(replay, eventId, account));
        print(latest, skipped?.why);
        if (replay.failed > 0) io.err("To see why some failed: postrider events list --state failed");
        for (const hint of skipped?.hints ?? []) io.err(hint);
        if (replay.superseded > 0) io.err("To see how the later replay is doing: postrider replay list");
        return hasSucceeded(replay) ? exitCode.ok : exitCode.failed;
      }
      await sayWhatHolds(replay);
      io.progress(progressLine(replay, clock.monotonicMs() - startedAtMs, unmarked));
      await pause(clock, pauseMs, account.signal);
    }
  } catch (error) {
    io.progress("");
    if (!(error instanceof Interrupted)) throw error;
    if (latest !== null) print(latest);
    if (latest === null || !hasEnded(latest.json as ReplayRow)) {
      io.err(
        `${id} keeps running. To follow it: postrider replay show ${id} --follow. To stop it: postrider replay cancel ${id}`,
      );
    }
    return signalExitCode[error.by];
  }
}

/** Says once of each paused webhook that deliveries wait for it, as soon as they do not get on. */
function createTeller({ url, callPatiently }: Account, io: Io) {
  const told = new Set<string>();
  let seen = -1;
  let looked = -1;
  return async (replay: ReplayRow): Promise<void> => {
    const ended = replay.queued - waitingOf(replay);
    const isStill = ended === seen;
    seen = ended;
    if (!isStill || looked === ended || waitingOf(replay) === 0) return;
    looked = ended;
    for (const hint of (await ifFound(waitingHints(replay, { url, call: callPatiently }))) ?? []) {
      if (told.has(hint)) continue;
      told.add(hint);
      io.progress("");
      io.err(hint);
    }
  };
}
