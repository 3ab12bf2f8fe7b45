import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { createApi, openAccount } from "../../../src/cli/selftest/rig/account.ts";
import { percentile } from "../../../src/cli/selftest/rig/machine.ts";
import { operatorTokenFile } from "../../../src/secrets.ts";
import { readServerFile } from "../../../src/server-file.ts";
import { startDurableServer } from "../../support/postgres-server.ts";
import { startReceiver } from "../../support/receiver.ts";
import { type ServerProcess, startServerProcess } from "../../support/server-process.ts";
import { program } from "../crash/program.ts";
import { createLoad } from "./load.ts";

/**
 * `postrider restart` again and again beside a load that does not let up, of each server in turn, and beside attempts that are
 * under way whenever it comes.
 */
export interface TrialOptions {
  /** Servers on one PostgreSQL; null: one, with SQLite. */
  nodes: number | null;
  restarts: number;
  /** Of load between two restarts. */
  seconds: number;
  eventsPerSecond: number;
  /** How long a twentieth of the deliveries take. */
  slowMs: number;
  folder: string;
  say(text: string): void;
}

export interface Figures {
  readonly acknowledged: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Of those that were asked while a server was being succeeded, and of the others, which show what the machine does besides. */
  readonly longestMs: number;
  readonly longestBetweenMs: number;
  /** From its answer to its first arrival, of those that the receiver answers at once. */
  readonly deliveredAfterMs: { readonly p50: number; readonly p99: number; readonly longest: number };
  readonly delivered: number;
  readonly deliveredAgain: number;
  /** From the command to its end. */
  readonly restartsTookMs: readonly number[];
  readonly faults: readonly string[];
}

const settleMs = 20_000;
/** After the command has ended, the former server still lets attempts end. */
const aftermathMs = 2_000;

interface Node {
  readonly folder: string;
  readonly port: number;
  readonly process: ServerProcess;
}

export async function tryRestarts({ nodes, folder, say, ...options }: TrialOptions): Promise<Figures> {
  const { restarts, seconds, eventsPerSecond, slowMs } = options;
  const arrivals = new Map<string, number>();
  const slowOnes = new Set<string>();
  let again = 0;
  const receiver = startReceiver({
    async answer({ path, headers }) {
      const id = headers.get("service-event-id") ?? "";
      if (arrivals.has(id)) again += 1;
      else arrivals.set(id, performance.now());
      if (path !== "/slow") return new Response(null, { status: 204 });
      slowOnes.add(id);
      await Bun.sleep(slowMs);
      return new Response(null, { status: 204 });
    },
  });
  const database = nodes === null ? null : await startDurableServer();
  const keyFile = join(folder, "master-key");
  writeFileSync(keyFile, "07".repeat(32), { mode: 0o600 });
  const servers: Node[] = [];
  const load: { current: ReturnType<typeof createLoad> | null } = { current: null };
  try {
    for (let nth = 0; nth < (nodes ?? 1); nth += 1) servers.push(await startNode(join(folder, `node-${nth}`), nth));
    const [first] = servers;
    if (!first) throw new Error("There is no server");
    const api = createApi(`http://localhost:${first.port}`);
    const operatorToken = (await Bun.file(join(first.folder, operatorTokenFile)).text()).trim();
    const open = (path: string) =>
      openAccount(api, { hooks: [{ path, manner: "steady" }], receiverUrl: receiver.url, operatorToken });
    const [quick, slow] = [await open("/quick"), await open("/slow")];
    const apiKeys = [...Array<string>(19).fill(quick.apiKey), slow.apiKey];
    load.current = createLoad({ ports: servers.map(({ port }) => port), apiKeys, eventsPerSecond });
    const { acknowledged, faults, answers } = load.current;
    const spans: { from: number; until: number }[] = [];
    load.current.start();
    const restartsTookMs: number[] = [];
    const others: string[] = [];
    for (let nth = 0; nth < restarts; nth += 1) {
      await Bun.sleep(seconds * 1000);
      const node = servers[nth % servers.length] ?? first;
      const startedAt = performance.now();
      const { code, said } = await restart(node.folder);
      restartsTookMs.push(Math.round(performance.now() - startedAt));
      spans.push({ from: startedAt - 10, until: performance.now() + aftermathMs });
      if (code !== 0) others.push(`postrider restart ended with ${code}: ${said}`);
      say(`${acknowledged.size} acknowledged, ${faults.length} faults: ${said}`);
    }
    await Bun.sleep(seconds * 1000);
    await load.current.stop();
    const endAt = performance.now() + settleMs;
    const missing = () => [...acknowledged.keys()].filter((id) => !arrivals.has(id));
    while (missing().length > 0 && performance.now() < endAt) await Bun.sleep(50);
    if (missing().length > 0) others.push(`${missing().length} acknowledged events were not delivered`);
    const waits = [...acknowledged].flatMap(([id, at]) => (slowOnes.has(id) ? [] : [(arrivals.get(id) ?? endAt) - at]));
    const of = (values: readonly number[], percent: number) => Math.round(percentile(values, percent) * 10) / 10;
    const isDuring = (at: number) => spans.some(({ from, until }) => at >= from && at <= until);
    const took = (fits: (at: number) => boolean) => answers.filter(({ at }) => fits(at)).map(({ tookMs }) => tookMs);
    const all = took(() => true);
    return {
      acknowledged: acknowledged.size,
      p50Ms: of(all, 50),
      p99Ms: of(all, 99),
      longestMs: of(took(isDuring), 100),
      longestBetweenMs: of(
        took((at) => !isDuring(at)),
        100,
      ),
      deliveredAfterMs: { p50: of(waits, 50), p99: of(waits, 99), longest: of(waits, 100) },
      delivered: arrivals.size,
      deliveredAgain: again,
      restartsTookMs,
      faults: [...faults, ...others],
    };
  } finally {
    await load.current?.stop();
    for (const node of servers) await end(node.folder);
    await receiver.stop();
    await database?.remove();
  }

  async function startNode(dataDir: string, nth: number): Promise<Node> {
    const port = freePort();
    const shared = database && {
      POSTRIDER_DATABASE_URL: database.url("postgres"),
      POSTRIDER_MASTER_KEY_FILE: keyFile,
      POSTRIDER_NODE_NAME: `node-${nth}`,
    };
    const env = { POSTRIDER_PORT: String(port), POSTRIDER_MIN_FREE_DISK: "0", ...shared };
    const process = startServerProcess(dataDir, env, program);
    await process.logged("server.started");
    return { folder: dataDir, port, process };
  }
}

async function restart(dataDir: string): Promise<{ code: number | null; said: string }> {
  const child = Bun.spawn([...program, "restart", "--data-dir", dataDir], {
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const said = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
  await child.exited;
  return { code: child.exitCode, said: said.join("").trim() };
}

/** Whichever process serves the folder by now. */
async function end(dataDir: string): Promise<void> {
  const pid = readServerFile(dataDir)?.pid;
  if (pid === undefined) return;
  process.kill(pid, "SIGTERM");
  while (readServerFile(dataDir) !== null) await Bun.sleep(20);
}

function freePort(): number {
  const listener = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
  listener.stop(true);
  return listener.port;
}
