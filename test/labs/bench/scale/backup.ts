import { existsSync, mkdirSync, readFileSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { endWithUs } from "../cleanup.ts";
import { makeFolder, runBench, sayBars, sharedOptions } from "../command.ts";
import { tenantCount } from "../event.ts";
import { describeSurroundings } from "../machine.ts";
import { positive } from "../options.ts";
import { say } from "../output.ts";
import { startReceiver } from "../receiver.ts";
import { type Bar, machineLines } from "../report.ts";
import { root } from "../servers.ts";
import { copyOf, dataIn, gigabytes, postponeBacklog, provideSeeded, sizeOf } from "./database.ts";
import { type Load, startLoad, type Window } from "./load.ts";
import { apiKeysIn } from "./reads.ts";
import { windowLine } from "./report.ts";
import { start, wait } from "./server-runs.ts";

/** `bun run bench:backup`: what a backup, and its verification, cost the server beside which they run. */
const help = `Usage: bun run bench:backup [options]

  --events 10000000  events in the database: 5.4 GB; with its copy and the restored one that takes 18 GB of disk
  --rate 3400        events ingested a second beside it: half of what bun run bench measures
  --seconds 30       of ingestion alone
  --warmup 10        seconds before, not measured
  --data-dir DIR     where the seeded database is; one that is there is used again, and stays
  --source           run src/main.ts instead of dist/postrider
  --no-gate          exit with 0 also when a bar is missed
`;

/** The bars. */
const mostTimesP99 = 2;
const mostBytes = 64 * 2 ** 20;
const sampleMs = 100;

await runBench({ name: "bench:backup", hint: "bun run bench:backup --help", readOptions, run: bench });

function readOptions(args: readonly string[]) {
  const { values } = parseArgs({
    args: [...args],
    options: {
      events: { type: "string", default: "10000000" },
      rate: { type: "string", default: "3400" },
      seconds: { type: "string", default: "30" },
      warmup: { type: "string", default: "10" },
      ...sharedOptions,
    },
  });
  if (values.help) return help;
  return {
    events: positive("events", values.events),
    rate: positive("rate", values.rate),
    seconds: positive("seconds", values.seconds),
    warmupSeconds: positive("warmup", values.warmup),
    dataDir: values["data-dir"],
    source: values.source,
    gate: !values["no-gate"],
  };
}

type Options = Exclude<ReturnType<typeof readOptions>, string>;

async function bench({ events, rate, seconds, warmupSeconds, dataDir, source, gate }: Options): Promise<number> {
  if (process.platform !== "linux") throw new Error("The bench reads /proc. Try: on Linux.");
  const program = source ? [process.execPath, join(root, "src", "main.ts")] : [join(root, "dist", "postrider")];
  if (!existsSync(program.at(-1) ?? "")) throw new Error("There is no dist/postrider. Try: bun run build");
  const parent = dataDir === undefined ? makeFolder(undefined) : resolve(dataDir);
  mkdirSync(parent, { recursive: true, mode: 0o700 });
  say(machineLines(await describeSurroundings(parent)));
  const { folder, history } = await provideSeeded(parent, events);
  const receiver = startReceiver();
  const copy = copyOf(folder, receiver.port);
  // Far ahead: what is measured is ingestion, and not how a backlog drains.
  postponeBacklog(copy.folder, Date.now() + 30 * 24 * 3_600_000);
  const site = { folder: copy.folder, databaseUrl: undefined, source, receiver, history };
  const apiKeys = await apiKeysIn(site, tenantCount);
  const server = { ...(await start(site)), apiKeys };
  const load: Load = await startLoad(server, receiver, rate);
  await load.during("warming up", wait(warmupSeconds));
  const { window: alone } = await load.during("ingestion alone", wait(seconds));
  say(windowLine("ingestion alone", alone));

  const archive = join(copy.folder, "backup.tar.zst");
  const run = async (label: string, args: readonly string[]) => {
    const { result, window } = await load.during(label, runCommand([...program, ...args], dataIn(copy.folder)));
    say(windowLine(label, window));
    say(`${" ".repeat(27)}memory of its own process ${megabytes(result)}, without its code, which is the server's too`);
    return { window, processBytes: result };
  };
  const made = await run("beside a backup", ["backup", archive]);
  say(`  ${gigabytes(sizeOf(copy.folder))} became ${gigabytes(statSync(archive).size)}`);
  const verified = await run("beside its verification", ["backup", "verify", archive, "--dir", copy.folder]);
  await load.stop();
  await server.stop();
  receiver.close();
  copy.remove();
  return sayBars([...judge("backup", alone, made), ...judge("verification", alone, verified)], gate);
}

function judge(name: string, alone: Window, { window, processBytes }: { window: Window; processBytes: number }): Bar[] {
  const times = window.ingestionP99Ms / alone.ingestionP99Ms;
  const grown = processBytes + Math.max(0, Math.max(...window.peakBytes) - Math.max(...alone.peakBytes));
  return [
    {
      name: `ingestion p99 beside the ${name}`,
      passed: times <= mostTimesP99,
      measured: `${times.toFixed(2)} times that without`,
      wanted: `at most ${mostTimesP99}`,
    },
    {
      name: `memory of the ${name}`,
      passed: grown <= mostBytes,
      measured: megabytes(grown),
      wanted: `at most ${megabytes(mostBytes)}`,
    },
  ];
}

/** @returns the most memory that it took, without what it has from files. @throws Error when it fails */
async function runCommand(command: readonly string[], dataDir: string): Promise<number> {
  const child = Bun.spawn([...command], {
    env: { PATH: process.env.PATH, POSTRIDER_DATA_DIR: dataDir },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  endWithUs(child);
  let most = 0;
  const sampler = setInterval(() => {
    most = Math.max(most, anonymousBytes(child.pid));
  }, sampleMs);
  try {
    const [out, err] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
    if ((await child.exited) !== 0) throw new Error(`${command.join(" ")}: ${out}${err}`);
    return most;
  } finally {
    clearInterval(sampler);
  }
}

function anonymousBytes(pid: number): number {
  try {
    return Number(/^Pss_Anon:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, "utf8"))?.[1] ?? 0) * 1024;
  } catch {
    // It has ended.
    return 0;
  }
}

function megabytes(bytes: number): string {
  return `${(bytes / 2 ** 20).toFixed(0)} MiB`;
}
