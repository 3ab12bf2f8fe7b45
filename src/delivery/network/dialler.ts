import net, { type LookupFunction, type TcpNetConnectOpts } from "node:net";
import tls from "node:tls";
import { isLoopbackHost } from "../../lib/cidr.ts";
import { forgetOldest } from "../../lib/forget-oldest.ts";
import type { Connection } from "./connection.ts";
import type { Tunnels } from "./tunnel.ts";

/** Where a connection leads. */
export interface Destination {
  /** Scheme, host and port: a connection may be used for all requests that share them. */
  readonly origin: string;
  readonly isSecure: boolean;
  readonly host: string;
  readonly port: number;
  /** For TLS; empty for a literal address. */
  readonly servername: string;
  readonly lookup: LookupFunction;
}

export interface DiallerOptions {
  /** Certificate authorities to trust in addition to the usual ones, PEM. */
  extraCa?: string;
  /** They carry every connection to another machine; null: each goes straight to its host. */
  tunnels: Tunnels | null;
}

/** Gives a connection its socket, now or later; or ends it with the reason why there is none. */
export type Dial = (destination: Destination, connection: Connection) => void;

/**
 * How long one address of several has to connect before the next one is tried; the last one gets all the time that is
 * left. The runtime's 250 ms is less than a round trip around the world.
 */
const addressTimeoutMs = 500;

/** Some 3 KB each. */
const maxSessions = 512;
/**
 * A session holds the chain of certificates that came with it, and a receiver may send 100 KB of any: those of 512 such receivers
 * would hold 50 MB, on each of two threads.
 */
const maxSessionBytes = 16 * 1024;

export function createDialler({ extraCa, tunnels }: DiallerOptions): Dial {
  const trust = trustIn(extraCa);

  /** The latest TLS session of each origin: resuming it saves both sides half of a handshake. */
  const sessions = new Map<string, Buffer>();

  function secure({ origin, servername }: Destination, options: tls.ConnectionOptions): tls.TLSSocket {
    const session = sessions.get(origin);
    const socket = tls.connect({ ...options, ...trust, servername, ...(session && { session }) });
    socket.on("session", (latest) => {
      sessions.delete(origin);
      if (latest.length > maxSessionBytes) return;
      if (sessions.size >= maxSessions) forgetOldest(sessions);
      sessions.set(origin, latest);
    });
    // The session itself may be what the other end rejects.
    socket.on("error", () => sessions.delete(origin));
    return socket;
  }

  function dialDirectly(destination: Destination, connection: Connection): void {
    const { isSecure, host, port, lookup } = destination;
    const to: TcpNetConnectOpts = {
      host,
      port,
      lookup,
      noDelay: true,
      autoSelectFamily: true,
      autoSelectFamilyAttemptTimeout: addressTimeoutMs,
    };
    if (isSecure) connection.attach(secure(destination, to), "secureConnect");
    else connection.attach(net.connect(to), "connect");
  }

  return (destination, connection) => {
    const { isSecure, host, port } = destination;
    // To a proxy, loopback would be its own machine: what listens on this one is reached without it.
    if (tunnels === null || isLoopbackHost(host)) {
      dialDirectly(destination, connection);
      return;
    }
    tunnels.open({ host, port }, (error, way) => {
      if (error || !way) connection.fail(error ?? new Error("There is no way"));
      else if (connection.isOver) way.destroy();
      // A certificate for a literal address is checked against the host, so pass it: otherwise it would be checked
      // against the proxy's.
      else if (isSecure) connection.attach(secure(destination, { host, socket: way }), "secureConnect");
      else connection.attach(way, null);
    });
  };
}

/**
 * One context for all connections: passed as the `ca` option, it would be parsed for each one (790 handshakes/s, not
 * 1,500). `rejectUnauthorized` is explicit so that nothing in the environment can turn it off.
 */
function trustIn(extraCa: string | undefined): tls.ConnectionOptions {
  const trust = { rejectUnauthorized: true, minVersion: "TLSv1.2" } as const;
  if (extraCa === undefined) return { ...trust };
  const ca = [...tls.getCACertificates("default"), extraCa];
  return { ...trust, secureContext: tls.createSecureContext({ ca, minVersion: "TLSv1.2" }) };
}
