import type { ListenerPause } from "./listener-pause.ts";

/**
 * Bounds how many new connections one turn of the loop takes.
 *
 * The listener accepts until nobody waits, and reads and answers what a connection brings before it accepts the next. Whoever
 * connects as fast as that keeps the turn from ending, and everybody else waits: 64 connections at a time that send half an
 * event and reset made turns of 300 ms with 3,000 of them. So once a turn has had its share of new connections, those that
 * still wait are for the next one.
 *
 * The runtime does not say when it accepts, only requests tell: beyond a certain number in a turn, each is asked where it comes
 * from, and a connection that was heard lately is not new. Kept connections must not count: enough of them, always ready, would
 * use up the share of every turn before the listener had its own, and nobody new would get in.
 */
export interface AcceptLimit {
  /** A request has come. The server is asked about it when that matters, because it takes a microsecond. */
  note(request: Request, server: AddressSource | null): void;
}

/** Null: the request came to another listener. */
export type AddressSource = Pick<Bun.Server<unknown>, "requestIP">;

export interface AcceptLimitOptions {
  pause: Pick<ListenerPause, "begin" | "end">;
  monotonicMs(): number;
  /** Runs the callback when the turn is over. @default setImmediate */
  afterTurn?(callback: () => void): void;
}

/** Of a turn, before anybody asks where they come from: at a usual load there are no more. */
export const unaskedRequests = 64;
/** Of a turn, beyond those. */
export const newConnections = 16;

/** A connection is known for so long after it was heard, and for up to as long again. */
const periodMs = 100;
const periods = 256;

export function createAcceptLimit({ pause, monotonicMs, afterTurn = setImmediate }: AcceptLimitOptions): AcceptLimit {
  let requests = 0;
  let fresh = 0;
  /**
   * By the port at the other end, in which of the last 256 periods it was heard. Two clients may have one port, and a period
   * comes again: what is new may then count as known, and the turn takes one more.
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
      // Nobody knows where one came from that has been reset.
      const port = server?.requestIP(request)?.port;
      if (port !== undefined && !isNew(port)) return;
      fresh += 1;
      if (fresh === newConnections) pause.begin();
    },
  };
}
