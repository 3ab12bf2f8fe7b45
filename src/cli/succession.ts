import { idleTimeoutSeconds, listenerBodyLimit } from "../api.ts";
import type { App } from "../app.ts";
import type { Config } from "../config.ts";
import { StartupError, unavailable } from "../domain/errors.ts";
import type { Predecessor, Successor } from "../handover.ts";
import { canSharePorts } from "../http/shared-port.ts";
import { systemClock } from "../lib/clock.ts";
import { messageOf } from "../lib/error-message.ts";
import type { Log } from "../lib/log.ts";
import type { Restart } from "../operator/restart-routes.ts";
import { createNoReception, openReception, type Reception } from "../reception.ts";
import { sharedStoreFits, storeFits } from "../store/open.ts";
import { endsWithThisProcess, tellSupervisor } from "../supervisor.ts";
import { version } from "../version.ts";
import type { EndSignal, Io } from "./io.ts";
import { startSuccessor } from "./successor.ts";

export interface RestartDeps {
  io: Io;
  log: Log;
  /** The server was asked to end. */
  ending: AbortSignal;
  app(): App | null;
  succeed(successor: Successor): void;
}

/** See `Restart`: one at a time, and only where a successor would survive. */
export function createRestart({ io, log, ending, app, succeed }: RestartDeps): Restart {
  const refuse = (why: string) => unavailable(`The server was not restarted: ${why}.`, "not_restarted", 5);
  let isUnderWay = false;

  return async () => {
    if (ending.aborted) throw refuse("it is stopping");
    const obstacle = endsWithThisProcess(io.env, process.pid);
    if (obstacle !== null) throw refuse(obstacle);
    if (isUnderWay) throw refuse("another restart is under way. Try: wait for it");
    isUnderWay = true;
    const letPortGo = app()?.keepPort() ?? null;
    try {
      if (letPortGo === null) throw refuse(canSharePorts() ? isSettling : cannotShare);
      log.write("info", "server.restarting", {});
      const successor = await startSuccessor({
        args: io.args,
        env: io.env,
        ending,
        onDeath: (pid) => log.write("warn", "server.successor_died", { process: pid }),
      });
      succeed(successor);
      return { pid: successor.pid, version: successor.version };
    } catch (error) {
      letPortGo?.();
      isUnderWay = false;
      log.write("warn", "server.not_restarted", { message: messageOf(error) });
      throw error;
    }
  };
}

/** For some seconds, a listener of before is still closing (`listener.ts`). */
const isSettling =
  "its last restart, or a change of its certificate, is most likely still finishing. Try: again in 10 s";
const cannotShare = "two processes can share its port on Linux only. Try: stop it and start it again";

export interface EndRequests {
  /** The next signal that asks this process to end, or the stop of a predecessor that has not left yet. */
  readonly first: Promise<EndSignal>;
  /** The signal after that. Where the predecessor's stop came first, one signal more: terminals and supervisors signal both. */
  second(): Promise<EndSignal>;
}

export function awaitEndRequests(io: Pick<Io, "nextSignal" | "predecessor">): EndRequests {
  const signal = io.nextSignal();
  return {
    first: io.predecessor === null ? signal : Promise.race([signal, toldToStop(io.predecessor)]),
    second: () => signal.then(() => io.nextSignal()),
  };
}

async function toldToStop(predecessor: Predecessor): Promise<EndSignal> {
  return (await predecessor.heard("stop")) ? "SIGTERM" : new Promise(() => {});
}

export interface Succession {
  readonly reception: Reception;
  /** True: it has said that it is leaving, and may have attempts under way; false: it has ended. */
  readonly predecessorLives: boolean;
}

/**
 * Waits until the predecessor has left, and holds whatever arrives at the port meanwhile.
 * @throws StartupError when this program could not take over; then nothing has changed
 */
export async function succeedTo(predecessor: Predecessor, config: Config, env: Io["env"]): Promise<Succession> {
  const { databaseUrl: url } = config;
  const fits = url === null ? storeFits(config.dataDir) : await sharedStoreFits({ url, clock: systemClock });
  if (!fits) {
    throw new StartupError(
      "The database is of another version's schema, and is upgraded by a start. Try: stop the server, then start this version.",
    );
  }
  const reception = openReception({
    ...config,
    idleTimeout: idleTimeoutSeconds,
    maxRequestBodySize: listenerBodyLimit,
  });
  const haveSteered = () => {
    // Sent before the predecessor ends: the supervisor would take its end for the end of the service.
    tellSupervisor([`MAINPID=${process.pid}`], env);
    predecessor.say({ kind: "steered" });
  };
  predecessor.say({ kind: "ready", version });
  const leaves = await predecessor.heard("leaving");
  if (leaves && url !== null && (await predecessor.heard("released"))) {
    await reception.close();
    return { reception: createNoReception(config.port, haveSteered), predecessorLives: true };
  }
  reception.steer();
  haveSteered();
  return { reception, predecessorLives: await predecessor.heard("released") };
}
