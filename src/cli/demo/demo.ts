import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createApp } from "../../app.ts";
import { loadConfig } from "../../config.ts";
import { openDataDir } from "../../data-dir.ts";
import { StartupError, UsageError } from "../../domain/errors.ts";
import { systemClock as clock } from "../../lib/clock.ts";
import { formatDuration } from "../../lib/duration.ts";
import { messageOf } from "../../lib/error-message.ts";
import { createLog } from "../../lib/log.ts";
import type { Flag } from "../arguments.ts";
import type { Command } from "../command.ts";
import { readDatabaseUrl } from "../database-url.ts";
import { exitCode, type Io, signalExitCode } from "../io.ts";
import { createRunOwn } from "../run-own.ts";
import { createNarrator, type Narrator } from "./narrator.ts";
import { startDemoReceiver } from "./receiver.ts";
import { showNodes } from "./show-nodes.ts";
import { tellStory } from "./story.ts";

const databaseFlag: Flag = {
  name: "--database-url",
  value: "URL",
  doc: "Show several servers on this PostgreSQL database, which must be empty, and is emptied again.",
};
const defaultNodes = 3;
const mostNodes = 8;
const nodesFlag: Flag = {
  name: "--nodes",
  value: "N",
  doc: `How many servers share it, 2 to ${mostNodes} (default ${defaultNodes}).`,
};

export const demoCommand: Command = {
  words: ["demo"],
  operands: [],
  flags: [databaseFlag, nodesFlag],
  summary: "Show a delivery, a retry and a replay on this machine, and verify every signature",
  details: `Runs a server on a free port with a temporary folder, and a receiver on loopback. Creates
an account, registers a webhook and sends events over HTTP: one is refused twice with 503
and retried, one is refused with 400 and replayed. Every signature is verified with the
published key. Nothing is left behind, nothing leaves the machine, and your settings are
not read. Exit code 0: every check passed.

With --database-url it shows several servers that share a PostgreSQL database: one account,
events posted to all of them, and one server killed while it delivers; the others go on with
its deliveries when its lease has run out, after 20 seconds.`,
  async run({ flags }, io) {
    const shared = sharedDatabaseFrom(flags);
    const folder = makeFolder();
    try {
      const narrator = createNarrator(io, clock);
      const interrupted = io.nextSignal().then((signal) => {
        narrator.interrupt();
        return signalExitCode[signal];
      });
      if (shared !== null) return await showNodes({ ...shared, folder, io, narrator, interrupted });
      return await Promise.race([demonstrate(folder, narrator, io), interrupted]);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  },
};

function makeFolder(): string {
  const parent = tmpdir();
  try {
    return mkdtempSync(join(parent, "postrider-demo-"));
  } catch (error) {
    throw new StartupError(
      `No folder can be made in ${parent} (${messageOf(error)}). Try: TMPDIR with a folder that this user can write to.`,
    );
  }
}

/** Null: a single server, with a folder to itself. @throws UsageError */
function sharedDatabaseFrom(flags: ReadonlyMap<string, string>): { url: string; count: number } | null {
  const url = readDatabaseUrl(flags, databaseFlag.name);
  const nodes = flags.get(nodesFlag.name);
  if (url === undefined && nodes === undefined) return null;
  const count = Number(nodes ?? defaultNodes);
  if (!Number.isInteger(count) || count < 2 || count > mostNodes) {
    throw new UsageError(
      `${nodesFlag.name} must be a whole number from 2 to ${mostNodes}, not "${nodes}". Try: ${nodesFlag.name} ${defaultNodes}`,
    );
  }
  if (url === undefined) {
    throw new UsageError(
      `Several servers need a PostgreSQL database that they share, an empty one. ` +
        `Try: postrider demo --nodes ${count} --database-url postgres://user:password@host/postrider_demo`,
    );
  }
  return { url, count };
}

/** Short pauses between attempts, so that the whole demo takes two seconds. */
const retrySchedule = "300ms,600ms";

async function demonstrate(folder: string, narrator: Narrator, io: Io): Promise<number> {
  const startedAt = clock.monotonicMs();
  const config = loadConfig(
    {
      POSTRIDER_PORT: "0",
      POSTRIDER_DATA_DIR: folder,
      POSTRIDER_RETRY_SCHEDULE: retrySchedule,
      POSTRIDER_MIN_FREE_DISK: "0",
    },
    new Map(),
  );
  // A webhook that fails, which is a warning to an operator, is part of the story.
  const log = createLog({ level: "error", format: "text", now: clock.now, out: io.err });
  const receiver = startDemoReceiver(statusFor);
  const dataDir = openDataDir(folder);
  const { secrets, path: storeFolder } = dataDir;
  const app = await createApp(config, {
    clock,
    log,
    secrets,
    storeFolder,
    home: dataDir,
    runOwn: createRunOwn(io.env, config.dataDir),
  });
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
    narrator.end(false, `A check failed: ${messageOf(error)}`);
    return exitCode.failed;
  } finally {
    await app.stop();
    await receiver.stop();
  }
}

/** How the receiver answers, for the three situations of the story. */
function statusFor(eventType: string, nth: number): number {
  if (eventType === "order.paid") return nth <= 2 ? 503 : 200;
  if (eventType === "order.cancelled") return nth === 1 ? 400 : 200;
  return 200;
}
