import type { PauseReason } from "./listener-pause.ts";

/**
 * Bounds how many new connections one turn of the event loop takes.
 *
 * The listener accepts until no connection is waiting, and reads and answers what each one brings before it accepts the next.
 * A client that connects fast enough keeps the turn from ending while everybody else waits: 64 connections at a time that
 * send half an event and reset caused turns of 300 ms with 3,000 connections in each. So once a turn has had its share of new
 * connections, the rest wait for the next turn.
 *
 * The runtime does not report accepts; only requests reveal them. Beyond a certain number of requests in a turn, each one is
 * asked for its origin, and a connection heard from recently is not new. Kept-alive connections must not count: enough of
 * them, always ready, would use up every turn's share before the listener got to its own, and no new client would get in.
 */
export interface AcceptLimit {
  /** A request has arrived. The server is asked about it only when that matters, because it takes a microsecond. */
  note(request: Request, server: AddressSource | null): void;
}

/** Null: the request came in through another listener. */
export type AddressSource = Pick<Bun.Server<unknown>, "requestIP">;

export interface AcceptLimitOptions {
  pause: PauseReason;
  monotonicMs(): number;
  /** Runs the callback when the turn is over. @default setImmediate */
  afterTurn?(callback: () => void): void;
}

/** Requests per turn that are not asked where they come from; a usual load has no more. */
export const unaskedRequests = 64;
/** New connections per turn, beyond those. */
export const newConnections = 16;

/** A connection stays known for this long after it was last heard from, and for up to as long again. */
const periodMs = 100;
const periods = 256;

export function createAcceptLimit({ pause, monotonicMs, afterTurn = setImmediate }: AcceptLimitOptions): AcceptLimit {
  let requests = 0;
  let fresh = 0;
  /**
   * Maps each remote port to the period, out of the last 256, in which it was last heard from. Two clients may share a port,
   * and period numbers wrap around: a new connection may then pass as known, and the turn takes one more.
   */
  const heardIn = new Uint8Array(2 ** 16).fill(periods / 2);

  function isNew(port: number): boolean {
    const period = Math.floor(monotonicMs() / periodMs) % periods;
    const age = (period - (heardIn[port] ?? 0) + periods) % periods;
    heardIn[port] = period;
    return age > 1;
  }

  function endTurn() {
    requests = 0;
    fresh = 0;
    pause.end();
  }

  return {
    note(request, server) {
      requests += 1;
      if (requests === 1) afterTurn(endTurn);
      if (requests <= unaskedRequests || fresh === newConnections) return;
      // A connection that has been reset no longer has a known origin.
      const port = server?.requestIP(request)?.port;
      if (port !== undefined && !isNew(port)) return;
      fresh += 1;
      if (fresh === newConnections) pause.begin();
    },
  };
}
