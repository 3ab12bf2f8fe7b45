import { readValues } from "../config.ts";
import { StartupError } from "../domain/errors.ts";
import { type Clock, sleep, systemClock } from "../lib/clock.ts";
import { readServerFile } from "../server-file.ts";
import { version } from "../version.ts";
import { type Command, dataDirFlag, jsonFlag } from "./command.ts";
import { exitCode } from "./io.ts";
import { createOperatorClient } from "./operator-client.ts";
import { readyPatienceMs, startPatienceMs } from "./successor.ts";

const lookEveryMs = 50;
/**
 * Attempts in flight get 8 s to finish, and what follows takes less than a second; but the server waits longer for a database
 * that does not answer, and once more for the successor that takes the place of one that has died.
 */
const patienceMs = 10_000 + startPatienceMs + readyPatienceMs + startPatienceMs;

export const restartCommand: Command = {
  words: ["restart"],
  operands: [],
  flags: [jsonFlag, dataDirFlag],
  summary: "Restart the running server, or switch it to another version, without downtime",
  details: `The running server starts whatever executable is now at its own path, with the same arguments
and environment, and hands over its port and data once attempts in flight have ended (on
PostgreSQL, immediately). No request is refused meanwhile. If the new one cannot start, the old
one keeps running. Linux only.`,
  async run({ flags }, io) {
    const { dataDir } = readValues(io.env, flags);
    const before = readServerFile(dataDir)?.pid ?? null;
    const answer = await createOperatorClient(dataDir).send("POST", "/operator/restart");
    const successor = answer as { pid: number; version: string };
    io.progress(`Process ${successor.pid} is ready and waits for attempts in flight to end`);
    const pid = await successorThatServes(dataDir, { before, announced: successor.pid }, systemClock).finally(() =>
      io.progress(""),
    );
    if (flags.has("--json")) io.out(JSON.stringify({ from: before, to: pid, version: successor.version }));
    else {
      const change = successor.version === version ? version : `version ${successor.version}`;
      io.out(`Process ${pid} (${change}) has taken over from process ${before}.`);
    }
    return exitCode.ok;
  },
};

/** The announced successor, or another one that was started in its place. @returns its process id */
async function successorThatServes(
  dataDir: string,
  { before, announced }: { before: number | null; announced: number },
  clock: Clock,
): Promise<number> {
  const startedAt = clock.monotonicMs();
  for (;;) {
    const server = readServerFile(dataDir);
    if (server && server.pid !== before && !server.stopping) return server.pid;
    if (clock.monotonicMs() - startedAt > patienceMs) {
      throw new StartupError(`Process ${announced} was ready but has not taken over. Try: look at the server's log.`);
    }
    await sleep(clock, lookEveryMs);
  }
}
