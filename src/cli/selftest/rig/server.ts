import { appendFileSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Clock } from "../../../lib/clock.ts";
import { isDiskFull } from "../../../lib/disk-full.ts";
import { messageOf } from "../../../lib/error-message.ts";
import { ownProgram } from "../../../own-program.ts";
import { type Faults, noteFault } from "./ledger.ts";

/** The server under test: this same program, as a separate process. */
export interface Server {
  /** Resolves when it listens. Rejects when it ends before that, even if ended by `kill`. */
  readonly ready: Promise<Listening>;
  /** Resolves when the process is gone. */
  readonly ended: Promise<void>;
  /** `kill -9`. */
  kill(): Promise<void>;
  /** Suspends the process; what others send to it waits. */
  freeze(): void;
  thaw(): void;
  /** Asks it to end, as an operator would. Resolves with its exit code. */
  stop(): Promise<number | null>;
}

export interface Listening {
  readonly port: number;
  /** Time since the process was started. */
  readonly afterMs: number;
}

export interface ServerOptions {
  readonly dataDir: string;
  /** As environment variables; the caller's own settings are not read. */
  readonly settings: Readonly<Record<string, string>>;
  readonly clock: Clock;
  readonly faults: Faults;
  /** The program as a command line. @default this same program */
  readonly program?: readonly string[];
  /** Whether an error in the log is no fault. @default none is expected */
  isExpected?(line: string): boolean;
}

const keptErrorChars = 2_000;

/** In the data directory: the output of its servers, one after the other. */
const logFile = "server.log";

/** Starts the server on a free port. An unrequested exit, and every error in the log, is a fault. */
export function startServer({
  dataDir,
  settings,
  clock,
  faults,
  program = ownProgram,
  isExpected,
}: ServerOptions): Server {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const startedAt = clock.monotonicMs();
  const child = Bun.spawn([...program, "serve"], {
    cwd: dataDir,
    env: { ...withoutOurs(process.env), ...settings, POSTRIDER_DATA_DIR: dataDir, POSTRIDER_PORT: "0" },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  let isAsked = false;
  let said = "";
  const { promise: ready, resolve, reject } = Promise.withResolvers<Listening>();
  // Nobody has to wait for it: some servers are killed before they listen.
  ready.catch(() => {});

  function takeLine(line: string): void {
    if (line.includes('"level":"error"') && !isExpected?.(line)) noteFault(faults, `the server logged ${line}`);
    if (!line.includes('"event":"server.started"')) return;
    const { url } = JSON.parse(line) as { url: string };
    resolve({ port: Number(new URL(url).port), afterMs: clock.monotonicMs() - startedAt });
  }

  /** When the disk is under test, it may be full and miss what was said then. The output is still read. */
  function keep(text: string): void {
    try {
      appendFileSync(join(dataDir, logFile), text);
    } catch (error) {
      if (!isDiskFull(error)) noteFault(faults, `the server's log cannot be kept: ${messageOf(error)}`);
    }
  }

  async function readLog(): Promise<void> {
    let rest = "";
    for await (const text of child.stdout.pipeThrough(new TextDecoderStream())) {
      keep(text);
      const lines = (rest + text).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) takeLine(line);
    }
  }

  async function readErrors(): Promise<void> {
    for await (const text of child.stderr.pipeThrough(new TextDecoderStream())) {
      said = (said + text).slice(-keptErrorChars);
    }
  }

  async function end(): Promise<void> {
    await Promise.allSettled([readLog(), readErrors()]);
    const code = await child.exited;
    const how = `the server exited with ${child.signalCode ?? `exit code ${code}`}: ${said.trim()}`;
    if (!isAsked) noteFault(faults, how);
    reject(new Error(how));
  }

  const ended = end();
  return {
    ready,
    ended,
    async kill() {
      isAsked = true;
      child.kill("SIGKILL");
      await ended;
    },
    freeze: () => child.kill("SIGSTOP"),
    thaw: () => child.kill("SIGCONT"),
    async stop() {
      isAsked = true;
      child.kill("SIGTERM");
      await ended;
      return child.exitCode;
    },
  };
}

const withoutOurs = (env: Readonly<Record<string, string | undefined>>) =>
  Object.fromEntries(Object.entries(env).filter(([name]) => !name.startsWith("POSTRIDER_")));
