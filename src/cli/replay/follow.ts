import type { Clock } from "../../lib/clock.ts";
import { shellWord } from "../../lib/shell-word.ts";
import type { Account } from "../client/account.ts";
import { refusalOf } from "../client/answer.ts";
import type { Call } from "../client/call.ts";
import { pause } from "../client/patience.ts";
import type { Reply } from "../client/server.ts";
import { readWebhookSettings, stateHint } from "../client/webhook.ts";
import { idInPath } from "../id-in-path.ts";
import { Interrupted } from "../interrupted.ts";
import { exitCode, type Io, signalExitCode } from "../io.ts";
import { createStyle } from "../style.ts";
import { plainText } from "../table.ts";
import { hasEnded, hasSucceeded, progressLine, type ReplayRow, summaryOf, waitingOf } from "./progress.ts";

const firstPauseMs = 200;
const longestPauseMs = 2_000;

export interface FollowOptions {
  io: Io;
  clock: Clock;
  json: boolean;
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
  while (waitingOf(reply.json as ReplayRow) > 0 && clock.monotonicMs() < giveUpAt && !signal.aborted) {
    // Ctrl+C ends the waiting; it is cancelled all the same.
    await pause(clock, firstPauseMs, signal).catch(() => {});
    if (!signal.aborted) reply = await readReplay(id, call, { url });
  }
  return reply;
}

/** What may be why deliveries were skipped: webhooks that are disabled, or gone. */
export async function skippedHints(
  replay: ReplayRow,
  account: Pick<Account, "call" | "url">,
): Promise<readonly string[]> {
  const { skipped, payloadsErased = 0 } = replay;
  if (skipped === 0 || payloadsErased > 0) return [];
  const { webhooks } = await readWebhookSettings(account);
  const disabled = webhooks.filter(({ state }) => state === "disabled");
  return [...disabled.flatMap((webhook) => stateHint(webhook) ?? []), ...removedHint(replay)];
}

/** A replay of one failure sends what failed for a webhook that is gone only to one that it names. */
function removedHint({ kind, filter = {} }: ReplayRow): readonly string[] {
  const { webhook, code, status } = filter;
  const isCommand = kind === "failed" || kind === "all";
  if (!isCommand || webhook !== undefined || (code === undefined && status === undefined)) return [];
  const flags = Object.entries(filter).map(([name, value]) => `--${name} ${shellWord(plainText(String(value)))}`);
  const command = ["postrider replay", kind, ...flags, "--webhook ID"].join(" ");
  return [`What failed for a removed webhook goes to another only if you name it. Try: ${command}`];
}

/**
 * Shows a replay's progress until it has ended, then prints how it ended. Ctrl+C stops the watching and leaves the replay
 * alone.
 * @returns 0 if everything was acknowledged
 */
export async function followReplay(id: string, account: Account, { io, clock, json }: FollowOptions): Promise<number> {
  const startedAtMs = clock.monotonicMs();
  // The line is cut to the terminal's width, and style marks would count.
  const unmarked = createStyle({ isTerminal: false, env: io.env });
  const print = (reply: Reply) => io.out(json ? reply.text : summaryOf(reply.json as ReplayRow, createStyle(io)));
  let latest: Reply | null = null;
  try {
    for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(longestPauseMs, pauseMs * 1.5)) {
      latest = await readReplay(id, account.callPatiently, account);
      const replay = latest.json as ReplayRow;
      if (hasEnded(replay)) {
        io.progress("");
        print(latest);
        if (replay.failed > 0) io.err("To see why some failed: postrider events list --state failed");
        for (const hint of await skippedHints(replay, account)) io.err(hint);
        if (replay.superseded > 0) io.err("To see how the later replay is doing: postrider replay list");
        return hasSucceeded(replay) ? exitCode.ok : exitCode.failed;
      }
      io.progress(progressLine(replay, clock.monotonicMs() - startedAtMs, unmarked));
      await pause(clock, pauseMs, account.signal);
    }
  } catch (error) {
    io.progress("");
    if (!(error instanceof Interrupted)) throw error;
    if (latest !== null) print(latest);
    io.err(
      `${id} keeps running. To follow it: postrider replay show ${id} --follow. To stop it: postrider replay cancel ${id}`,
    );
    return signalExitCode[error.by];
  }
}
