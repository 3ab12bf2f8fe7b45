import http from "node:http";
import https from "node:https";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import tls from "node:tls";
import { isLoopbackHost } from "../../lib/cidr.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Tunnels } from "./tunnel.ts";

/** The kept connections of deliveries. Each belongs to one scheme, host and port, and was judged when it was made. */
export interface ConnectionPool {
  /** The agent for a scheme. `fresh`: one that never takes a kept connection and keeps none. */
  agent(protocol: string, fresh: boolean): http.Agent;
  /** Whether the request went out on a kept connection of which not one byte of an answer came. */
  gotNothing(request: http.ClientRequest): boolean;
  /** Ends every connection, those in use too. */
  close(): void;
}

export interface ConnectionPoolOptions {
  clock: Clock;
  /** Certificate authorities to trust beside the usual ones, PEM. */
  extraCa?: string;
  /**
   * Over all hosts: an idle connection holds a descriptor and, with TLS, some 30 KB.
   * @default 1_024
   */
  maxIdleConnections?: number;
  /** Whether a connection to this address may be used once more. @default always */
  mayKeep?: (address: string) => boolean;
  /** By which every connection to another machine is made; null: each goes straight to its host. @default null */
  tunnels?: Tunnels | null;
}

/** Common servers drop a quiet connection after 5 s (hazards, section 3); ours go first. */
const idleMs = 4_000;
/** So a connection lives at most 4.5 s unused. */
const sweepEveryMs = 500;
const defaultMaxIdleConnections = 1_024;
const maxIdlePerHost = 256;
/**
 * How long one address of several has to connect before the next one is tried; the last one has all the time that is
 * left. The run-time's 250 ms is less than a round trip around the world.
 */
const addressTimeoutMs = 500;

/** What the pool notes on a socket itself: a map beside it would be looked up twice for every delivery. */
interface PooledSocket extends Socket {
  /** 0 while in use, undefined before the first use has ended. */
  idleUntilMs?: number;
  /** Of the other end. To ask for it is a call of the system. */
  keptAddress?: string;
  bytesReadBefore?: number;
}

/**
 * Built on the agents of `node:http` and `node:https`, with their idle book-keeping replaced: theirs sets and clears two
 * timers and two socket options for every request (2 to 3 µs of about 30) and has no limit over all hosts.
 */
export function createConnectionPool({
  clock,
  extraCa,
  maxIdleConnections = defaultMaxIdleConnections,
  mayKeep = () => true,
  tunnels = null,
}: ConnectionPoolOptions): ConnectionPool {
  // One context for all connections: as the `ca` option it would be parsed for each (790 handshakes/s, not 1,500) and
  // become part of the key of every look-up in the pool. `rejectUnauthorized` is said so that no environment unsays it.
  const dial = { autoSelectFamily: true, autoSelectFamilyAttemptTimeout: addressTimeoutMs } as const;
  const trust: https.AgentOptions = { ...dial, rejectUnauthorized: true, minVersion: "TLSv1.2" };
  if (extraCa !== undefined) {
    const ca = [...tls.getCACertificates("default"), extraCa];
    trust.secureContext = tls.createSecureContext({ ca, minVersion: "TLSv1.2" });
  }
  const keep = { keepAlive: true, scheduling: "lifo", maxFreeSockets: maxIdlePerHost } as const;
  const plain = new http.Agent({ ...dial, ...keep });
  const secure = new https.Agent({ ...trust, ...keep });
  const freshPlain = new http.Agent(dial);
  const freshSecure = new https.Agent(trust);
  for (const agent of [plain, secure]) takeOverIdling(agent);
  for (const agent of [plain, secure, freshPlain, freshSecure]) takeOverReading(agent);
  if (tunnels !== null) {
    for (const agent of [plain, freshPlain]) goThrough(tunnels, agent, null);
    for (const agent of [secure, freshSecure]) goThrough(tunnels, agent, trust);
  }

  let idleConnections = 0;
  let cancelSweep: (() => void) | undefined;

  function takeOverIdling(agent: http.Agent) {
    const reuseSocket = agent.reuseSocket;
    agent.keepSocketAlive = keepSocketAlive;
    agent.reuseSocket = (duplex: Duplex, request) => {
      const socket = duplex as PooledSocket;
      endIdling(socket);
      socket.bytesReadBefore = socket.bytesRead;
      reuseSocket.call(agent, socket, request);
    };
  }

  /** Asked by the agent when an answer has been read to its end. */
  function keepSocketAlive(duplex: Duplex): boolean {
    if (idleConnections >= maxIdleConnections) return false;
    const socket = duplex as PooledSocket;
    socket.keptAddress ??= socket.remoteAddress ?? "";
    if (!mayKeep(socket.keptAddress)) return false;
    if (socket.idleUntilMs === undefined) socket.once("close", () => endIdling(socket));
    idleConnections++;
    socket.idleUntilMs = clock.monotonicMs() + idleMs;
    cancelSweep ??= clock.after(sweepEveryMs, sweep);
    return true;
  }

  function endIdling(socket: PooledSocket) {
    if (socket.idleUntilMs !== 0) idleConnections--;
    socket.idleUntilMs = 0;
  }

  function sweep() {
    const nowMs = clock.monotonicMs();
    for (const agent of [plain, secure]) {
      for (const sockets of Object.values(agent.freeSockets)) {
        for (const socket of expiredOf(sockets as PooledSocket[], nowMs)) {
          endIdling(socket);
          socket.destroy();
          // Out of the agent now, not when its closing is through: until then the agent would still hand it out.
          socket.emit("agentRemove");
        }
      }
    }
    cancelSweep = idleConnections > 0 ? clock.after(sweepEveryMs, sweep) : undefined;
  }

  return {
    agent(protocol, fresh) {
      if (protocol === "https:") return fresh ? freshSecure : secure;
      return fresh ? freshPlain : plain;
    },
    gotNothing(request) {
      const socket = request.socket as PooledSocket | null;
      return request.reusedSocket && socket !== null && socket.bytesRead === socket.bytesReadBefore;
    },
    close() {
      cancelSweep?.();
      tunnels?.close();
      for (const agent of [plain, secure, freshPlain, freshSecure]) agent.destroy();
    },
  };
}

/**
 * What is read at once goes to the parser in pieces, and no further once the connection has been ended: the run-time reads
 * up to 512 KiB, and the parser works through what it is given whatever becomes of the request. A receiver that pours out
 * 1xx answers was heard 4,500 times before it was cut off at the hundredth, and 200 such attempts took 64 MB.
 */
const pieceBytes = 4 * 1024;

function takeOverReading(agent: http.Agent): void {
  const createConnection = agent.createConnection;
  agent.createConnection = (options, callback) => {
    const socket = createConnection.call(agent, options, callback);
    if (socket) pushInPieces(socket);
    return socket;
  };
}

/**
 * Of a proxy, loopback would be its own machine's: what listens on this one is reached without it.
 * @param trust null: without TLS
 */
function goThrough(tunnels: Tunnels, agent: http.Agent, trust: https.AgentOptions | null): void {
  const connectDirectly = agent.createConnection;
  agent.createConnection = (options, callback) => {
    const { host, port, servername } = options as tls.ConnectionOptions & { host: string; port: number };
    if (isLoopbackHost(host)) return connectDirectly.call(agent, options, callback);
    tunnels.open({ host, port: Number(port) }, (error, way) => {
      if (error || !way) return callback?.(error, undefined as never);
      const socket =
        trust === null ? way : tls.connect({ ...(trust as tls.ConnectionOptions), socket: way, servername });
      pushInPieces(socket);
      callback?.(null, socket);
    });
    return undefined;
  };
}

function pushInPieces(socket: Duplex): void {
  const push = socket.push;
  socket.push = (data: unknown, encoding) => {
    if (!(data instanceof Uint8Array) || data.length <= pieceBytes) return push.call(socket, data, encoding);
    let wantsMore = true;
    for (let at = 0; at < data.length && !socket.destroyed; at += pieceBytes) {
      wantsMore = push.call(socket, data.subarray(at, at + pieceBytes));
    }
    return wantsMore;
  };
}

/** The agent takes from the end and puts back at the end, so the longest unused come first. */
function expiredOf(sockets: readonly PooledSocket[], nowMs: number): PooledSocket[] {
  const firstLive = sockets.findIndex(({ idleUntilMs = 0 }) => idleUntilMs > nowMs);
  return firstLive === -1 ? [...sockets] : sockets.slice(0, firstLive);
}
