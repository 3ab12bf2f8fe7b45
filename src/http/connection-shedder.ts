import { ptr } from "bun:ffi";
import { openDescriptors } from "../lib/descriptors.ts";
import { portOf, type SocketCalls, socketCalls } from "../lib/socket-calls.ts";

/**
 * Closes connections of clients that do nothing when too few descriptors are left for those that do.
 *
 * Bun 1.4.5 does not bound its connections, and at the descriptor limit its listener spins: `accept` fails, the waiting
 * connection stays readable, and this keeps a core busy while no client gets in, no file opens and no delivery dials. Its own
 * `closeIdleConnections` closes connections that wait for their next request but leaves those that never made one, and a
 * flood consists of those. So on Linux the system is asked which connections they are, and its own call shuts them down; to
 * the runtime that looks like an ordinary end.
 */
export interface ConnectionShedder {
  /**
   * Closes up to this many connections: first those that never sent a byte, then those whose first request makes no progress,
   * then those between two requests. Never one that has had a response and waits for the next to complete.
   * @returns how many were closed
   */
  shed(count: number): number;
}

export interface ShedderOptions {
  /** The ports that the server listens on. */
  ports(): readonly number[];
  /** Closes the connections between two requests. @returns their number */
  closeIdle(): number;
  /** @default stalledAfterMs */
  stalledMs?: number;
}

/** For a first request that has arrived in part, or whose answer takes long: a live client says more within this time. */
const stalledAfterMs = 2000;

export function createConnectionShedder({
  ports,
  closeIdle,
  stalledMs = stalledAfterMs,
}: ShedderOptions): ConnectionShedder {
  return {
    shed(count) {
      if (count <= 0) return 0;
      const calls = socketCalls();
      const closed = calls ? shutDown(calls, ports(), count, stalledMs) : 0;
      return closed < count ? closed + closeIdle() : closed;
    },
  };
}

function shutDown(calls: SocketCalls, ports: readonly number[], count: number, stalledMs: number): number {
  const found: Connection[] = [];
  for (const descriptor of openDescriptors()) {
    const connection = look(calls, descriptor, ports);
    if (connection) found.push(connection);
  }
  const silent = found.filter(({ received }) => received === 0);
  const stalled = found.filter(
    ({ received, acknowledged, quietMs }) => received > 0 && acknowledged === 0 && quietMs >= stalledMs,
  );
  const longestFirst = (a: Connection, b: Connection) => b.quietMs - a.quietMs;
  let closed = 0;
  for (const { descriptor } of [...silent.sort(longestFirst), ...stalled.sort(longestFirst)]) {
    if (closed >= count) break;
    // Another thread may have closed a descriptor of its own meanwhile, and its number may have been reused.
    if (look(calls, descriptor, ports) && calls.shutdown(descriptor, bothWays) === 0) closed += 1;
  }
  return closed;
}

interface Connection {
  descriptor: number;
  /** Time since either side last sent something; since the connection was made if neither ever did. */
  quietMs: number;
  /** Bytes received from the peer. */
  received: number;
  /** Bytes of ours that the peer has acknowledged. */
  acknowledged: number;
}

const bothWays = 2;
const tcp = 6;
const tcpInfo = 11;
const established = 1;

/** `struct tcp_info` of Linux 4.2 and later; it only ever grows at its end. */
const infoBytes = 136;
const offsets = { state: 0, lastDataSent: 44, lastDataReceived: 52, bytesAcked: 120, bytesReceived: 128 } as const;

const info = new DataView(new ArrayBuffer(infoBytes));
const length = new Uint32Array(1);

/** A connection that a client opened to one of these ports; null for anything else that a descriptor can be. */
function look(calls: SocketCalls, descriptor: number, ports: readonly number[]): Connection | null {
  const port = portOf(calls, descriptor);
  if (port === null || !ports.includes(port)) return null;
  length[0] = infoBytes;
  if (calls.getsockopt(descriptor, tcp, tcpInfo, ptr(info.buffer as ArrayBuffer), ptr(length)) !== 0) return null;
  if ((length[0] ?? 0) < infoBytes || info.getUint8(offsets.state) !== established) return null;
  const sent = info.getUint32(offsets.lastDataSent, true);
  const received = info.getUint32(offsets.lastDataReceived, true);
  return {
    descriptor,
    quietMs: Math.min(sent, received),
    received: Number(info.getBigUint64(offsets.bytesReceived, true)),
    acknowledged: Number(info.getBigUint64(offsets.bytesAcked, true)),
  };
}
