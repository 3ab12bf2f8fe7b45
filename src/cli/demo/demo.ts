import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createApp } from "../../app.ts";
import { loadConfig } from "../../config.ts";
import { openDataDir } from "../../data-dir.ts";
import { systemClock as clock } from "../../lib/clock.ts";
import { formatDuration } from "../../lib/duration.ts";
import { createLog } from "../../lib/log.ts";
import type { Command } from "../command.ts";
import { exitCode, type Io, signalExitCode } from "../io.ts";
import { createNarrator } from "./narrator.ts";
import { startDemoReceiver } from "./receiver.ts";
import { tellStory } from "./story.ts";

export const demoCommand: Command = {
  words: ["demo"],
  operands: [],
  flags: [],
  summary: "Show a delivery, a retry and a replay on this machine, and verify every signature",
  details: `Runs a server on a free port with a temporary folder, and a receiver on loopback. Creates
an account, registers a webhook and sends events over HTTP: one is refused twice with 503
and retried, one is refused with 400 and replayed. Every signature is verified with the
published key. Nothing is left behind, nothing leaves the machine, and your settings are
not read. Exit code 0: every check passed.`,
  async run(_args, io) {
    const folder = mkdtempSync(join(tmpdir(), "postrider-demo-"));
    try {
      const interrupted = io.nextSignal().then((signal) => signalExitCode[signal]);
      return await Promise.race([demonstrate(folder, io), interrupted]);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  },
};

/** Short pauses between attempts, so that the whole demo takes two seconds. */
const retrySchedule = "300ms,600ms";

async function demonstrate(folder: string, io: Io): Promise<number> {
  const startedAt = clock.monotonicMs();
  const narrator = createNarrator(io, clock.monotonicMs);
  const config = loadConfig(
    {
      POSTRIDER_PORT: "0",
      POSTRIDER_DATA_DIR: folder,
      POSTRIDER_RETRY_SCHEDULE: retrySchedule,
      POSTRIDER_MIN_FREE_DISK: "0",
    },
    new Map(),
  );
  const log = createLog({ level: "warn", format: "text", now: clock.now, out: io.err });
  const receiver = startDemoReceiver(statusFor);
  const dataDir = openDataDir(folder);
  const { secrets, path: storeFolder } = dataDir;
  const app = await createApp(config, { clock, log, secrets, storeFolder, home: dataDir });
  try {
    narrator.chapter("Postrider on this machine");
    const { url } = await narrator.step("Server", async () => {
      const started = await app.start();
      return { ...started, said: `${started.url}, with an empty folder` };
    });
    const sum = await tellStory({ base: url, receiver, narrator, clock });
    const took = formatDuration(clock.monotonicMs() - startedAt);
    narrator.end(true, `Every check passed: ${sum}, in ${took}.`);
    io.out("  The demo server is stopped and its folder removed. To run your own: postrider serve");
    return exitCode.ok;
  } catch (error) {
    narrator.end(false, `A check failed: ${error instanceof Error ? error.message : error}`);
    return exitCode.failed;
  } finally {
    await app.stop();
    await receiver.stop();
  }
}

/** How the receiver answers: the story's three kinds of day. */
function statusFor(eventType: string, nth: number): number {
  if (eventType === "order.paid") return nth <= 2 ? 503 : 200;
  if (eventType === "order.cancelled") return nth === 1 ? 400 : 200;
  return 200;
}
