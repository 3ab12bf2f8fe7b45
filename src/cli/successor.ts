import { unavailable } from "../domain/errors.ts";
import type { PredecessorMessage, Successor, SuccessorMessage } from "../handover.ts";
import { ownProgram } from "../own-program.ts";
import { successorVariable } from "./successor-variable.ts";

/** A large executable on a cold disk takes some seconds to load. */
const readyPatienceMs = 30_000;

/**
 * Starts this program anew, with the same arguments and environment: a new version, if its file was replaced.
 * @throws DomainError with its own words when it does not become ready; then it is gone, and has changed nothing
 */
export async function startSuccessor(args: readonly string[], env: NodeJS.ProcessEnv): Promise<Successor> {
  const said = new Map<SuccessorMessage["kind"], (message: SuccessorMessage) => void>();
  const hears = <K extends SuccessorMessage["kind"]>(kind: K) =>
    new Promise<Extract<SuccessorMessage, { kind: K }>>((resolve) => said.set(kind, resolve as never));
  const answers = Promise.race([hears("ready"), hears("refused")]);
  const steered = hears("steered");

  const child = Bun.spawn([...ownProgram, ...args], {
    env: { ...env, [successorVariable]: String(process.pid) },
    stdio: ["inherit", "inherit", "inherit"],
    ipc: (message) => said.get((message as SuccessorMessage).kind)?.(message as SuccessorMessage),
  });
  const patience = AbortSignal.timeout(readyPatienceMs);
  const late = new Promise<null>((resolve) => patience.addEventListener("abort", () => resolve(null)));
  const answer = await Promise.race([answers, child.exited.then(() => null), late]);
  if (answer?.kind !== "ready") {
    child.kill("SIGKILL");
    throw unavailable(wordsFor(answer?.message ?? null, child.exitCode), "not_restarted", 5);
  }
  const say = (message: PredecessorMessage) => {
    if (child.exitCode === null) child.send(message);
  };
  return {
    pid: child.pid,
    version: answer.version,
    async takePort() {
      say({ kind: "leaving" });
      await Promise.race([steered, child.exited]);
    },
    enter() {
      if (child.exitCode !== null || child.signalCode !== null) return false;
      say({ kind: "released" });
      child.disconnect();
      child.unref();
      return true;
    },
  };
}

function wordsFor(message: string | null, code: number | null): string {
  if (message !== null) return `The successor did not start, and this server goes on: ${message}`;
  if (code !== null) return `The successor ended with code ${code}, and this server goes on. Try: look at its log.`;
  return `The successor was not ready within ${readyPatienceMs / 1000} s, and this server goes on. Try: stop this one and start it again.`;
}
