import { cpSync, mkdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { type Account, createApi, openAccount } from "../../../src/cli/selftest/rig/account.ts";
import { listRecords } from "../../../src/cli/selftest/rig/audit.ts";
import { examineDatabase } from "../../../src/store/sqlite/examine.ts";
import { databaseFile } from "../../../src/store/sqlite/open.ts";
import { type ServerProcess, startServerProcess } from "../../support/server-process.ts";
import { createLoad } from "./load.ts";
import { createMoments } from "./moments.ts";
import { createReplicator } from "./replicator.ts";
import { digestsOf } from "./rows.ts";

/**
 * Litestream beside a server under load, through three restarts of the server: one in order, one by `kill -9`, one while
 * Litestream is away as well.
 *
 *   load, restart, load, kill -9, load, both away, load ─▶ server ends, Litestream ends ─▶ restored ─▶ books compared
 */
export interface ProofOptions {
  litestream: string;
  folder: string;
  /** Of load, between two restarts. */
  seconds: number;
  eventsPerSecond: number;
  /** So many restarts by `kill -9` instead of the three; 0: the three. */
  kills?: number;
  say(text: string): void;
}

export interface Proof {
  readonly acknowledged: number;
  readonly unanswered: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly longestMs: number;
  readonly databaseMib: number;
  readonly largestLogMib: number;
  readonly restoreMs: number;
  /** Why Litestream copied the whole database, each time. */
  readonly snapshots: readonly string[];
  readonly faults: readonly string[];
}

/** Why it may copy the whole database once after the kill: it had read a commit that never came about. */
const lastReadIsGone = "last page does not exist in last ltx file";

const mebibytes = (bytes: number) => Math.round((bytes / 2 ** 20) * 10) / 10;

export async function proveReplication({ litestream, folder, seconds, ...rest }: ProofOptions): Promise<Proof> {
  const { eventsPerSecond, kills = 0, say } = rest;
  const moments = createMoments(say);
  const dataDir = join(folder, "data");
  const path = join(dataDir, databaseFile);
  const replicator = createReplicator(litestream, join(folder, "litestream"), path);
  const receiver = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response(null, { status: 204 }) });
  let server: ServerProcess | null = null;
  let port = 0;

  async function start(): Promise<string> {
    server = startServerProcess(dataDir, { POSTRIDER_CHECKPOINTS: "external", POSTRIDER_PORT: String(port) });
    const { url } = await server.logged("server.started");
    port = Number(new URL(String(url)).port);
    moments.note("the server is there");
    server.logged("storage.warning").then(
      ({ message }) => moments.note(`the server has warned: ${message}`),
      () => {},
    );
    return String(url);
  }

  async function end(signal: NodeJS.Signals): Promise<void> {
    server?.kill(signal);
    await server?.exited;
    moments.note(`the server has ended (${signal})`);
  }

  const faults: string[] = [];
  let largestLog = 0;
  const logLook = setInterval(() => {
    largestLog = Math.max(largestLog, statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0);
  }, 50);
  try {
    const url = await start();
    const operatorToken = readFileSync(join(dataDir, "operator-token"), "utf8").trim();
    const api = createApi(url);
    const account: Account = await openAccount(api, {
      hooks: [{ path: "/hook", manner: "steady" }],
      receiverUrl: `http://127.0.0.1:${receiver.port}`,
      operatorToken,
    });
    await replicator.start();
    const load = createLoad({ url, apiKey: account.apiKey, eventsPerSecond });
    const kill = {
      said: "kill -9",
      restart: async () => {
        await end("SIGKILL");
        await start();
      },
    };
    const restarts = [
      {
        said: "a restart in order",
        restart: async () => {
          await end("SIGTERM");
          await start();
        },
      },
      kill,
      {
        said: "a restart while Litestream is away",
        restart: async () => {
          // In this order: what is written after Litestream has gone may begin the log anew.
          await end("SIGTERM");
          await replicator.stop();
          moments.note("Litestream is away");
          await start();
          await replicator.start();
          moments.note("Litestream is there");
        },
      },
    ];
    const steps = kills > 0 ? Array.from({ length: kills }, () => kill) : restarts;
    for (const { said, restart } of steps) {
      await load.runFor(seconds);
      say(`${load.figures().acknowledged} events acknowledged; ${said}`);
      await Promise.all([restart(), load.runFor(0.5)]);
    }
    await load.runFor(seconds);
    await load.answered();
    await delivered(createApi(url), account);
    await end("SIGTERM");
    await replicator.stop();

    const restored = join(folder, "restored");
    mkdirSync(restored, { mode: 0o700 });
    const restoredAt = performance.now();
    await replicator.restore(join(restored, databaseFile));
    const restoreMs = Math.round(performance.now() - restoredAt);
    const before = digestsOf(path);
    const after = digestsOf(join(restored, databaseFile));
    for (const [table, digest] of before) {
      if (after.get(table) !== digest) faults.push(`table ${table}: ${digest}, restored ${after.get(table)}`);
    }
    faults.push(...examineDatabase(restored).faults);

    // As the machine is gone: the database from the replica, the secrets from elsewhere.
    for (const secret of ["master-key", "session-secret"]) cpSync(join(dataDir, secret), join(restored, secret));
    server = startServerProcess(restored, { POSTRIDER_PORT: "0", POSTRIDER_PAUSED: "deliveries" });
    const { url: restoredUrl } = await server.logged("server.started");
    const records = await listRecords(createApi(String(restoredUrl)), account);
    const stored = new Set(records.map(({ eventId }) => eventId));
    const lost = load.acknowledged().filter(({ eventId }) => !stored.has(eventId));
    if (lost.length > 0) faults.push(`acknowledged events are not in the restored database: ${moments.place(lost)}`);
    await end("SIGTERM");

    faults.push(...replicator.errors.map((error) => `Litestream: ${error}`));
    const again = replicator.snapshots.slice(1);
    if (again.length > Math.max(1, kills) || again.some((reason) => !reason.startsWith(lastReadIsGone))) {
      faults.push(`Litestream copied the whole database more than once: ${replicator.snapshots.join("; ")}`);
    }
    return {
      ...load.figures(),
      databaseMib: mebibytes(statSync(join(restored, databaseFile)).size),
      largestLogMib: mebibytes(largestLog),
      restoreMs,
      snapshots: replicator.snapshots,
      faults,
    };
  } finally {
    clearInterval(logLook);
    await end("SIGKILL");
    await replicator.stop();
    await receiver.stop(true);
  }
}

async function delivered(api: ReturnType<typeof createApi>, { session: token }: Account): Promise<void> {
  for (;;) {
    const path = "/v1/events/state/PENDING?payload=false&size=1";
    const { total } = await api.send<{ total: number }>("GET", path, 200, { token });
    if (total === 0) return;
    await Bun.sleep(50);
  }
}
