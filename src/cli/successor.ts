import { unavailable } from "../domain/errors.ts";
import type { PredecessorMessage, Successor, SuccessorMessage } from "../handover.ts";
import { ownProgram } from "../own-program.ts";
import { successorVariable } from "./successor-variable.ts";

/** A large executable on a cold disk takes some seconds to load. */
export const readyPatienceMs = 30_000;
/** For one system call and two messages. */
const steerPatienceMs = 5_000;
/** A database that does not answer is waited for, while this server keeps serving. */
export const startPatienceMs = 60_000;

export interface SuccessorOptions {
  /** The program's arguments. */
  args: readonly string[];
  env: NodeJS.ProcessEnv;
  /** Ends the successor as well, and no other one is started. */
  ending: AbortSignal;
  /** Called when one has died before it owned everything; another one is started in its place, once. */
  onDeath(pid: number): void;
  /** @default this program */
  program?: readonly string[];
}

/**
 * Starts this program again, with the same arguments and environment: a new version, if its file was replaced.
 * @throws DomainError in the successor's own words when it does not become ready; then it is gone, and has changed nothing
 */
export async function startSuccessor({
  args,
  env,
  ending,
  onDeath,
  program = ownProgram,
}: SuccessorOptions): Promise<Successor> {
  const command = [...program, ...args];
  const first = await launch(command, env, ending);
  let latest = first;
  let mayReplace = true;

  /** @returns a live candidate; null when there is none */
  async function living(): Promise<Candidate | null> {
    if (latest.isAlive()) return latest;
    if (ending.aborted) return null;
    onDeath(latest.pid);
    if (!mayReplace) return null;
    mayReplace = false;
    try {
      latest = await launch(command, env, ending);
      return latest;
    } catch {
      return null;
    }
  }

  /** @returns a candidate that has the port; null when there is none */
  async function steered(): Promise<Candidate | null> {
    const candidate = await living();
    return candidate === null || (await candidate.takePort()) ? candidate : steered();
  }

  async function movedIn(): Promise<Candidate | null> {
    const candidate = await living();
    return candidate === null || (await candidate.moveIn()) ? candidate : movedIn();
  }

  return {
    pid: first.pid,
    version: first.version,
    enterBeside: async () => (await movedIn()) !== null,
    takePort: async () => void (await steered()),
    async enter() {
      const candidate = await steered();
      candidate?.release();
      return candidate !== null;
    },
    kill: () => latest.kill(),
  };
}

/** A process that is ready to succeed this one. */
interface Candidate {
  readonly pid: number;
  readonly version: string;
  isAlive(): boolean;
  /** Can be called again once it has the port. @returns false when it has died, or did not answer and was killed for that */
  takePort(): Promise<boolean>;
  /** Lets it enter; it lives on when this process ends. */
  release(): void;
  /** Lets it enter; it takes the port once it serves. @returns as `takePort` */
  moveIn(): Promise<boolean>;
  kill(): void;
}

async function launch(command: readonly string[], env: NodeJS.ProcessEnv, ending: AbortSignal): Promise<Candidate> {
  const said = new Map<SuccessorMessage["kind"], (message: SuccessorMessage) => void>();
  const hears = <K extends SuccessorMessage["kind"]>(kind: K) =>
    new Promise<Extract<SuccessorMessage, { kind: K }>>((resolve) => said.set(kind, resolve as never));
  const answers = Promise.race([hears("ready"), hears("refused")]);
  const steered = hears("steered");

  const child = spawn(command, env, (message) => said.get(message.kind)?.(message));
  const kill = () => child.kill("SIGKILL");
  const say = (message: PredecessorMessage) => {
    try {
      child.send(message);
    } catch {
      // It is dead, or dying: its end of the channel closes before its death is known. `died` will tell.
    }
  };
  let mayHavePort = false;
  const end = () => (mayHavePort ? say({ kind: "stop" }) : kill());
  ending.addEventListener("abort", end);
  const isAlive = () => child.exitCode === null && child.signalCode === null;
  const died = child.exited.then(() => {
    ending.removeEventListener("abort", end);
    return null;
  });
  const answer = await Promise.race([answers, died, after(readyPatienceMs)]);
  if (answer?.kind !== "ready") {
    const { exitCode, signalCode } = child;
    kill();
    if (ending.aborted) throw unavailable(isEnding, "not_restarted", 5);
    throw unavailable(wordsFor(answer?.message ?? null, signalCode ?? exitCode), "not_restarted", 5);
  }
  async function hasPort(patienceMs: number): Promise<boolean> {
    const has = await Promise.race([steered, died, after(patienceMs)]);
    if (has !== null && isAlive()) return true;
    kill();
    await died;
    return false;
  }
  const leave = () => {
    mayHavePort = true;
    say({ kind: "leaving" });
  };
  return {
    pid: child.pid,
    version: answer.version,
    isAlive,
    takePort() {
      leave();
      return hasPort(steerPatienceMs);
    },
    release() {
      say({ kind: "released" });
      child.unref();
    },
    async moveIn() {
      leave();
      say({ kind: "released" });
      const has = await hasPort(startPatienceMs);
      if (has) child.unref();
      return has;
    },
    kill,
  };
}

const isEnding = "The server was not restarted: it is stopping.";

/** @throws DomainError when there is no such program, or it may not be run */
function spawn(command: readonly string[], env: NodeJS.ProcessEnv, onMessage: (message: SuccessorMessage) => void) {
  try {
    return Bun.spawn([...command], {
      env: { ...env, [successorVariable]: String(process.pid) },
      stdio: ["inherit", "inherit", "inherit"],
      ipc: onMessage,
    });
  } catch (error) {
    if (!(error instanceof Error && "code" in error)) throw error;
    const why = `${command[0]} cannot be started (${error.code}). Try: put an executable file there, and restart again.`;
    throw unavailable(wordsFor(why, null), "not_restarted", 5);
  }
}

const after = (ms: number): Promise<null> =>
  new Promise((resolve) => AbortSignal.timeout(ms).addEventListener("abort", () => resolve(null)));

function wordsFor(message: string | null, end: NodeJS.Signals | number | null): string {
  if (message !== null) return `The new process did not start, so this one keeps running: ${message}`;
  if (end !== null)
    return `The new process ended with ${end}, so this one keeps running. Try: look at the server's log.`;
  return `The new process was not ready within ${readyPatienceMs / 1000} s, so this one keeps running. Try: stop the server and start it again.`;
}
