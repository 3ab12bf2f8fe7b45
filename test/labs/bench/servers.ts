import { existsSync, mkdirSync, mkdtempSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Subprocess } from "bun";
import { endWithUs } from "./cleanup.ts";
import { tenantCount } from "./event.ts";
import { type Meter, startMeter } from "./meter.ts";
import { say, showProgress } from "./output.ts";

export interface Server {
  port: number;
  apiKeys: readonly string[];
  meter: Meter;
  pid: number;
  /** What it printed and nobody expected: at most the first 4,000 characters. */
  said(): string;
  /** False once it has ended, for whatever reason. */
  isRunning(): boolean;
  /** When its process was started, by `performance.now()`. */
  startedMs: number;
  /** Ends it in order, after 10 s by force. */
  stop(): Promise<void>;
  /** Ends it as a crash does. */
  kill(): Promise<void>;
}

export const root = join(import.meta.dir, "..", "..", "..");
const readyMs = 20_000;
const readyPollMs = 50;
const stopMs = 10_000;

export interface RelayOptions {
  /** By what it delivers. @default "own" */
  client?: "own" | "node";
  /** One receiver for each tenant. @default of the receiver port */
  urls?: readonly string[];
  env?: Readonly<Record<string, string>>;
}

/** Starts a relay of this folder and reads its port from the first line that it prints. */
export async function startRelay(
  file: "bare-relay.ts" | "trivial-relay.ts",
  receiverPort: number,
  { client = "own", urls, env }: RelayOptions = {},
): Promise<Server> {
  const startedMs = performance.now();
  const child = Bun.spawn([process.execPath, join(import.meta.dir, file), String(receiverPort), client], {
    env: { ...process.env, ...env, ...(urls && { BARE_RELAY_URLS: JSON.stringify(urls) }) },
    stdin: "pipe",
    stdout: "pipe",
    stderr: "inherit",
  });
  endWithUs(child);
  const { value } = await child.stdout.getReader().read();
  const port = Number(new TextDecoder().decode(value));
  if (!(port > 0)) throw new Error(`${file} did not start.`);
  const apiKeys = Array.from({ length: urls?.length ?? tenantCount }, (_, n) => `bare_${n}`);
  return running(child, startedMs, port, apiKeys, () => "");
}

export interface SilentReceiver {
  readonly port: number;
  /** From now on it answers nothing. */
  hang(): void;
  stop(): Promise<void>;
}

/** Starts the receiver that never answers, or does so until it is told to `hang`. */
export async function startSilentReceiver(from: "start" | "until-told" = "start"): Promise<SilentReceiver> {
  const child = Bun.spawn([process.execPath, join(import.meta.dir, "silent-receiver.ts"), from], {
    stdin: "pipe",
    stdout: "pipe",
    stderr: "inherit",
  });
  endWithUs(child);
  const { value } = await child.stdout.getReader().read();
  return {
    port: Number(new TextDecoder().decode(value)),
    hang() {
      child.stdin.write("hang\n");
      void child.stdin.flush();
    },
    async stop() {
      child.kill("SIGKILL");
      await child.exited;
    },
  };
}

export interface ProductOptions {
  dataDir: string;
  source: boolean;
  /** Runs in place of Postrider, with its settings. @default what `source` says */
  program?: readonly string[];
  profileDir?: string | undefined;
  /** Settings beside those of every run. */
  env?: Readonly<Record<string, string>>;
  /** Lines of its log that are as they should be; the others are `said`. @default none */
  expected?: RegExp;
}

/** Starts Postrider in local mode and waits until it is ready. Its keys come with the tenants. */
export async function startProduct({
  dataDir,
  source,
  program,
  profileDir,
  env = {},
  expected,
}: ProductOptions): Promise<Server> {
  const port = freePort();
  const profiling = profileDir === undefined ? [] : ["--cpu-prof", "--cpu-prof-dir", profileDir];
  const fromSource = [process.execPath, ...profiling, join(root, "src/main.ts")];
  const command = program ?? (source ? fromSource : [await builtExecutable()]);
  const startedMs = performance.now();
  const child = Bun.spawn([...command], {
    cwd: dataDir,
    env: {
      ...withoutOurSettings(process.env),
      POSTRIDER_PORT: String(port),
      POSTRIDER_DATA_DIR: join(dataDir, "data"),
      POSTRIDER_LOG_LEVEL: "warn",
      ...env,
    },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  endWithUs(child);
  const said = collect(child, expected);
  const endMs = performance.now() + readyMs;
  while (!(await isReady(port))) {
    if (child.exitCode !== null) throw new Error(`Postrider ended with ${child.exitCode}:\n${said()}`);
    if (performance.now() > endMs) throw new Error(`Postrider was not ready after ${readyMs / 1000} s:\n${said()}`);
    await Bun.sleep(readyPollMs);
  }
  void child.exited.then(() => {
    if (said() !== "") say(`Postrider said:\n${said()}`);
  });
  return running(child, startedMs, port, [], said);
}

function running(
  child: Subprocess,
  startedMs: number,
  port: number,
  apiKeys: readonly string[],
  said: () => string,
): Server {
  const meter = startMeter(child.pid);
  return {
    port,
    apiKeys,
    meter,
    pid: child.pid,
    said,
    isRunning: () => child.exitCode === null && child.signalCode === null,
    startedMs,
    async stop() {
      meter.stop();
      child.kill("SIGTERM");
      const forced = setTimeout(() => child.kill("SIGKILL"), stopMs);
      await child.exited;
      clearTimeout(forced);
    },
    async kill() {
      meter.stop();
      child.kill("SIGKILL");
      await child.exited;
    },
  };
}

const keptOutputChars = 4_000;

/** Reads what a child prints, so that it never waits for us, and keeps the beginning of what is not expected. */
function collect(child: Subprocess<"ignore", "pipe", "pipe">, expected: RegExp | undefined): () => string {
  let text = "";
  const keep = (line: string) => {
    if (text.length < keptOutputChars && !expected?.test(line)) text += `${line}\n`;
  };
  const read = async (stream: ReadableStream<Uint8Array>) => {
    const decoder = new TextDecoder();
    let begun = "";
    for await (const chunk of stream) {
      const lines = (begun + decoder.decode(chunk, { stream: true })).split("\n");
      begun = lines.pop() ?? "";
      for (const line of lines) keep(line);
    }
    if (begun !== "") keep(begun);
  };
  void read(child.stdout).catch(() => {});
  void read(child.stderr).catch(() => {});
  return () => text.slice(0, keptOutputChars).trim();
}

async function isReady(port: number): Promise<boolean> {
  try {
    return (await fetch(`http://127.0.0.1:${port}/readyz`)).ok;
  } catch {
    return false;
  }
}

function freePort(): number {
  const probe = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
  const { port } = probe;
  probe.stop(true);
  return port;
}

const withoutOurSettings = (env: Record<string, string | undefined>) =>
  Object.fromEntries(Object.entries(env).filter(([name]) => !name.startsWith("POSTRIDER_")));

const sources = ["src", "web", "drizzle", "build.ts", "package.json"];

/** The compiled program; built first when there is none or when a source is younger. */
async function builtExecutable(): Promise<string> {
  const path = join(root, "dist", "postrider");
  const builtMs = existsSync(path) ? statSync(path).mtimeMs : 0;
  const changedMs = Math.max(...sources.map((name) => youngestMs(join(root, name))));
  if (builtMs >= changedMs) return path;
  showProgress("building dist/postrider");
  const build = Bun.spawn([process.execPath, "build.ts"], { cwd: root, stdout: "pipe", stderr: "pipe" });
  endWithUs(build);
  const [out, err] = await Promise.all([new Response(build.stdout).text(), new Response(build.stderr).text()]);
  if ((await build.exited) !== 0 || !existsSync(path)) {
    throw new Error(`dist/postrider could not be built. Try: bun run bench --source\n${out}${err}`);
  }
  return path;
}

function youngestMs(path: string): number {
  if (!existsSync(path)) return 0;
  const { mtimeMs } = statSync(path);
  if (!statSync(path).isDirectory()) return mtimeMs;
  const entries = readdirSync(path, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return Math.max(0, ...entries.map((entry) => statSync(join(entry.parentPath, entry.name)).mtimeMs));
}

export function makeDataDir(parent: string): string {
  mkdirSync(parent, { recursive: true });
  return mkdtempSync(join(parent, "postrider-bench-"));
}
