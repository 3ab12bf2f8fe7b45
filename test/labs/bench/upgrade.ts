import { existsSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, statSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { formatDuration } from "../../../src/lib/duration.ts";
import { makeEarlierDatabase } from "../../support/earlier-database.ts";
import { endWithUs, removeAtEnd } from "./cleanup.ts";
import { runBench } from "./command.ts";
import { createControlGroup } from "./control-group.ts";
import { describeSurroundings, folderOnDisk } from "./machine.ts";
import { positive } from "./options.ts";
import { say, showProgress } from "./output.ts";
import { machineLines } from "./report.ts";
import { root } from "./servers.ts";

/**
 * `bun run bench:upgrade`: what it takes to bring a large database of schema 5 to today's. A server is started on it in a
 * control group with little memory; half way it is ended by SIGTERM, and the next one goes on.
 */
const help = `Usage: bun run bench:upgrade [options]

  --events 2000000    events, each with a delivery and an attempt
  --payload 150       bytes of each
  --memory 256        MiB of the control group
  --data-dir DIR      where the temporary data folder is made
`;

/** The law: an upgrade needs at most so much more than the program itself. */
const mostGrownMib = 64;
const watchEveryMs = 50;

await runBench({ name: "bench:upgrade", readOptions, run: benchUpgrade });

function readOptions(args: readonly string[]) {
  const { values } = parseArgs({
    args: [...args],
    options: {
      events: { type: "string", default: "2000000" },
      payload: { type: "string", default: "150" },
      memory: { type: "string", default: "256" },
      "data-dir": { type: "string" },
      help: { type: "boolean", short: "h", default: false },
    },
  });
  if (values.help) return help;
  return {
    events: positive("events", values.events),
    payloadBytes: positive("payload", values.payload),
    memoryMib: positive("memory", values.memory),
    parent: values["data-dir"] ?? folderOnDisk(),
  };
}

type Options = Exclude<ReturnType<typeof readOptions>, string>;

async function benchUpgrade({ events, payloadBytes, memoryMib, parent }: Options): Promise<number> {
  if (process.platform !== "linux") throw new Error("Peaks of memory are read from /proc: Linux only.");
  const executable = join(root, "dist", "postrider");
  if (!existsSync(executable)) throw new Error("There is no dist/postrider. Try: bun run build");
  const folder = mkdtempSync(join(parent, "postrider-upgrade-"));
  removeAtEnd(folder);
  say(machineLines(await describeSurroundings(folder)));

  showProgress(`Writing ${events} events …`);
  makeEarlierDatabase(folder, { schema: 5, events, payloadBytes });
  const before = sizeMib(folder);
  const group = createControlGroup({ memoryBytes: memoryMib * 2 ** 20 });
  say(`database  ${events} events, ${before} MiB`);
  say(`memory    ${group ? `a control group of ${memoryMib} MiB` : "no control group may be made here: peaks only"}`);

  const run = (endAfterMs: number | null) => watchedStart({ executable, folder, endAfterMs, enter: group?.enter });
  const first = await run(10_000);
  say(
    `SIGTERM   after ${formatDuration(first.tookMs)}, ended with ${first.exitCode} in ${formatDuration(first.endingMs)}`,
  );
  const rest = await run(null);
  const plain = await run(null);
  const kills = group?.kills() ?? 0;
  group?.remove();
  const grownMib = Math.max(first.peakMib, rest.peakMib) - plain.peakMib;
  say(`upgrade   ${formatDuration(first.tookMs + rest.tookMs - plain.tookMs)}; the last line of it: ${rest.lastLine}`);
  say(
    `peak      ${Math.max(first.peakMib, rest.peakMib)} MiB resident, ${plain.peakMib} without an upgrade: ${grownMib} more`,
  );
  say(
    `disk      ${Math.max(first.peakDiskMib, rest.peakDiskMib)} MiB more at most; ${before} MiB before, ${sizeMib(folder)} after`,
  );
  const held = grownMib <= mostGrownMib && kills === 0 && first.exitCode === 0 && rest.exitCode === 0;
  say(
    held
      ? `HELD: at most ${mostGrownMib} MiB more, nothing killed`
      : `MISSED: ${mostGrownMib} MiB more (${kills} killed)`,
  );
  return held ? 0 : 1;
}

interface Start {
  executable: string;
  folder: string;
  /** SIGTERM so long after the start; null: when it listens. */
  endAfterMs: number | null;
  enter: ((command: readonly string[]) => string[]) | undefined;
}

async function watchedStart({ executable, folder, endAfterMs, enter = (command) => [...command] }: Start) {
  const startedMs = performance.now();
  const takenBefore = sizeMib(folder);
  const child = Bun.spawn(enter([executable, "serve"]), {
    env: { POSTRIDER_DATA_DIR: folder, POSTRIDER_PORT: "0", POSTRIDER_LOG_FORMAT: "json" },
    stdout: "pipe",
    stderr: "inherit",
  });
  endWithUs(child);
  let peakMib = 0;
  let peakDiskMib = 0;
  const watch = setInterval(() => {
    peakMib = Math.max(peakMib, residentPeakMib(child.pid));
    peakDiskMib = Math.max(peakDiskMib, sizeMib(folder) + unnamedMib(child.pid) - takenBefore);
  }, watchEveryMs);
  const timer = endAfterMs === null ? undefined : setTimeout(() => end(), endAfterMs);
  let endedMs = 0;
  const end = () => {
    endedMs = performance.now();
    child.kill("SIGTERM");
  };
  let said = "";
  for await (const chunk of child.stdout) {
    const text = new TextDecoder().decode(chunk);
    said += text;
    for (const [, line] of text.matchAll(/"message":"(Upgrading [^"]*)"/g)) showProgress(line ?? "");
    if (endedMs === 0 && said.includes('"server.started"')) end();
  }
  clearTimeout(timer);
  clearInterval(watch);
  return {
    exitCode: await child.exited,
    tookMs: endedMs - startedMs,
    endingMs: performance.now() - endedMs,
    peakMib,
    peakDiskMib,
    lastLine: [...said.matchAll(/"message":"(Upgrading [^"]*)"/g)].at(-1)?.[1] ?? "none",
  };
}

function residentPeakMib(pid: number): number {
  try {
    return Math.round(Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0) / 1024);
  } catch {
    return 0;
  }
}

/** Files that have no name any more, as SQLite's temporary ones, and still take their room. */
function unnamedMib(pid: number): number {
  let bytes = 0;
  try {
    for (const descriptor of readdirSync(`/proc/${pid}/fd`)) {
      const path = `/proc/${pid}/fd/${descriptor}`;
      if (/^\/.* \(deleted\)$/.test(readlinkSync(path))) bytes += statSync(path).size;
    }
  } catch {
    // It was closed in between, or the process has ended.
  }
  return Math.round(bytes / 2 ** 20);
}

function sizeMib(folder: string): number {
  const sizes = readdirSync(folder).map((name) => statSync(join(folder, name), { throwIfNoEntry: false })?.size ?? 0);
  return Math.round(sizes.reduce((sum, size) => sum + size, 0) / 2 ** 20);
}
