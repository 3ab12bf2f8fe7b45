import { type DomainError, notFound, unavailable } from "../domain/errors.ts";
import { systemClock } from "../lib/clock.ts";
import { errorResponse, securityHeaders } from "./errors.ts";
import { beatsAt, type HealthOpened, type HealthOpening, readinessStates, stateAt } from "./health-beacon.ts";
import { listenFaultOf, refuseSharing } from "./listen-fault.ts";

/** The other end of `health-beacon.ts`. The build names this file as an entry point of its own. */
declare const self: Worker;

/** Four missed beats: the server is blocked and cannot answer. */
const lateAfterMs = 1000;
/** A disk may stall for seconds; after this long, a restart is the better bet. */
const deadAfterMs = 60_000;

self.onmessage = ({ data }: MessageEvent<HealthOpening>) => self.postMessage(open(data));

function open({ host, port, isSuccessor, shared }: HealthOpening): HealthOpened {
  const cells = new Int32Array(shared);
  let beats = 0;
  let beatAt = systemClock.monotonicMs();

  /** Time since the last beat noticed, by a probe or by the timer below. */
  function silentMs(): number {
    const now = systemClock.monotonicMs();
    const counted = Atomics.load(cells, beatsAt);
    if (counted !== beats) {
      beats = counted;
      beatAt = now;
    }
    return now - beatAt;
  }
  setInterval(silentMs, 100);

  function notReady(): DomainError | null {
    if (silentMs() > lateAfterMs) return blocked();
    const state = readinessStates[Atomics.load(cells, stateAt)] ?? "unknown";
    return state === "ready" ? null : unavailable(reasons[state], state === "unknown" ? "not_started" : state, 5);
  }

  try {
    if (port !== 0 && !isSuccessor) refuseSharing(host, port);
    const server = Bun.serve({
      hostname: host,
      port,
      reusePort: true,
      development: false,
      fetch: (request) => {
        const path = /^[^:]+:\/\/[^/]*([^?#]*)/.exec(request.url)?.[1];
        if (path === "/readyz") return answer(notReady());
        if (path === "/healthz") return answer(silentMs() > deadAfterMs ? blocked() : null);
        return answer(notFound("This port serves only /healthz and /readyz.", "unknown_path"));
      },
    });
    return { port: server.port ?? port };
  } catch (error) {
    return { fault: listenFaultOf(error) };
  }
}

/** The last one on its connection: only connections without an answer can be closed when descriptors run short. */
function answer(refusal: DomainError | null): Response {
  const response =
    refusal === null ? Response.json({ status: "ok" }, { headers: securityHeaders }) : errorResponse(refusal);
  response.headers.set("Connection", "close");
  return response;
}

const blocked = () => unavailable("The server is stuck: it is waiting for the disk or the CPU.", "server_blocked", 5);

const reasons = {
  unknown: "The server is starting.",
  storage_full: "The disk is almost full.",
  storage_unavailable: "The storage does not accept writes.",
  shutting_down: "The server is shutting down.",
};
