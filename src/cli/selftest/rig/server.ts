import { appendFileSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Clock } from "../../../lib/clock.ts";
import { isDiskFull } from "../../../lib/disk-full.ts";
import { messageOf } from "../../../lib/error-message.ts";
import { ownProgram } from "../../../own-program.ts";
import { type Faults, noteFault } from "./ledger.ts";

/** The server under test: this very program, as a process of its own. */
export interface Server {
  /** Resolves when it listens. Rejects when it ends before, also by `kill`. */
  readonly ready: Promise<Listening>;
  /** Resolves when the process is gone. */
  readonly ended: Promise<void>;
  /** `kill -9`. */
  kill(): Promise<void>;
  /** Stops the process where it stands; what others send it waits. */
  freeze(): void;
  thaw(): void;
  /** Asks it to end, as an operator does. Resolves with its exit code. */
  stop(): Promise<number | null>;
}

export interface Listening {
  readonly port: number;
  /** From the start of the process. */
  readonly afterMs: number;
}

export interface ServerOptions {
  readonly dataDir: string;
  /** As they stand in the environment; those of the caller's own are not read. */
  readonly settings: Readonly<Record<string, string>>;
  readonly clock: Clock;
  readonly faults: Faults;
  /** The program as a command line. @default this very program */
  readonly program?: readonly string[];
  /** Whether a line of the log that tells of an error is no fault. @default none is */
  isExpected?(line: string): boolean;
}

const keptErrorChars = 2_000;

/** In its data directory: what its servers have said, one after the other. */
const logFile = "server.log";

/** Starts the server on a free port. An end that nobody asked for, and every line of the log that tells of an error, is a fault. */
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
  // Nobody need wait for it: some servers are killed before they listen.
  ready.catch(() => {});

  function takeLine(line: string): void {
    if (line.includes('"level":"error"') && !isExpected?.(line)) noteFault(faults, `the server logged ${line}`);
    if (!line.includes('"event":"server.started"')) return;
    const { url } = JSON.parse(line) as { url: string };
    resolve({ port: Number(new URL(url).port), afterMs: clock.monotonicMs() - startedAt });
  }

  /** Where the disk is what is tested, it may be full, and what was said then is missing. It is read all the same. */
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
