import type { Clock } from "../lib/clock.ts";
import { faultOf, type StartThread, type Thread } from "../lib/threads.ts";
import { cannotListen, type ListenFault } from "./listen-fault.ts";
import type { Readiness } from "./readiness.ts";

/**
 * The two probes on their own port, answered by their own thread.
 *
 * SQLite syncs inside COMMIT, on the thread that also answers requests: while the disk takes seven seconds to sync, nothing
 * else in the server moves, including its `/healthz`. This thread touches no disk. The server sends it a beat four times a
 * second, along with what it knows of its own readiness; when the beats stop it is not ready, and after a minute not healthy.
 *
 * Syncing in a thread of the runtime's pool instead (`synchronous=NORMAL` and an `fdatasync` of the log before the responses)
 * would leave the syncs at a log restart and in checkpoints where they are, as well as every read of a page that the system
 * has not cached: on such a disk the probes would still hang, only less often.
 */
export interface HealthBeacon {
  /** @returns the port @throws StartupError when it cannot listen there */
  start(): Promise<number>;
  /** Reports not ready from now on: the server is stopping. */
  drain(): void;
  stop(): void;
}

export interface HealthBeaconDeps {
  host: string;
  port: number;
  /** True: the server before this one may still be giving up the port. */
  isSuccessor: boolean;
  readiness: Readiness;
  clock: Clock;
  startThread: StartThread;
}

/** What the server writes and the thread reads, through `Atomics`: two 32-bit numbers. */
export const beatsAt = 0;
export const stateAt = 1;
export const readinessStates = ["unknown", "ready", "storage_full", "storage_unavailable", "shutting_down"] as const;

export interface HealthOpening {
  readonly host: string;
  readonly port: number;
  readonly isSuccessor: boolean;
  readonly shared: SharedArrayBuffer;
}

export type HealthOpened = { port: number } | { fault: ListenFault };

const beatMs = 250;

export function createHealthBeacon({
  host,
  port,
  isSuccessor,
  readiness,
  clock,
  startThread,
}: HealthBeaconDeps): HealthBeacon {
  const shared = new SharedArrayBuffer(8);
  const cells = new Int32Array(shared);
  let worker: Thread | null = null;
  let cancel = () => {};
  let draining = false;

  const tell = (state: (typeof readinessStates)[number]) =>
    void Atomics.store(cells, stateAt, readinessStates.indexOf(state));

  function beat(): void {
    Atomics.add(cells, beatsAt, 1);
    void readiness().then((refusal) => {
      if (draining) return;
      if (refusal === null) tell("ready");
      else tell(refusal.code === "storage_full" ? "storage_full" : "storage_unavailable");
    });
    cancel = clock.after(beatMs, beat);
  }

  return {
    start() {
      const started = startThread(new URL("./health-worker.ts", import.meta.url));
      worker = started;
      started.postMessage({ host, port, isSuccessor, shared } satisfies HealthOpening);
      return new Promise((resolve, reject) => {
        const refuse = (fault: ListenFault) =>
          reject(cannotListen("The health probes", { host, port, setting: "POSTRIDER_HEALTH_PORT" }, fault));
        started.onmessage = ({ data }: MessageEvent<HealthOpened>) => {
          if ("fault" in data) return refuse(data.fault);
          started.unref();
          beat();
          resolve(data.port);
        };
        started.onerror = (event) => refuse({ code: "", message: faultOf(event) });
      });
    },
    drain() {
      draining = true;
      tell("shutting_down");
    },
    stop() {
      cancel();
      worker?.terminate();
    },
  };
}
