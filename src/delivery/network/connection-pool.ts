import type { Clock } from "../../lib/clock.ts";
import { Connection } from "./connection.ts";
import { createDialler, type Destination } from "./dialler.ts";
import type { Tunnels } from "./tunnel.ts";

/** The connections that deliveries use. Each belongs to one scheme, host and port, and was judged when it was made. */
export interface ConnectionPool {
  /** A connection with nothing under way. `fresh`: a new one, which is not kept. */
  take(destination: Destination, fresh: boolean): Connection;
  /** How many are kept at the moment. */
  idle(): number;
  /** Ends every connection, including those in use. */
  close(): void;
}

export interface ConnectionPoolOptions {
  clock: Clock;
  /** Certificate authorities to trust in addition to the usual ones, PEM. */
  extraCa?: string;
  /**
   * Across all hosts: an idle connection holds a descriptor and, with TLS, some 30 KB.
   * @default 1_024
   */
  maxIdleConnections?: number;
  /** Whether a connection to this address may be reused. @default always */
  mayKeep?: (address: string) => boolean;
  /** They carry every connection to another machine; null: each goes straight to its host. @default null */
  tunnels?: Tunnels | null;
}

/** Common servers drop a quiet connection after 5 s (hazards, section 3); ours go first. */
const idleMs = 4_000;
/** So a connection lives at most 4.5 s unused. */
const sweepEveryMs = 500;
const defaultMaxIdleConnections = 1_024;
const maxIdlePerHost = 256;

export function createConnectionPool({
  clock,
  extraCa,
  maxIdleConnections = defaultMaxIdleConnections,
  mayKeep = () => true,
  tunnels = null,
}: ConnectionPoolOptions): ConnectionPool {
  const dial = createDialler({ tunnels, ...(extraCa !== undefined && { extraCa }) });
  const open = new Set<Connection>();
  /** By origin; taken from the end and returned to the end, so the longest unused come first. */
  const kept = new Map<string, Connection[]>();
  let idleConnections = 0;
  let cancelSweep: (() => void) | undefined;

  const owner = {
    keep(connection: Connection): boolean {
      const { origin } = connection;
      const ofHost = kept.get(origin) ?? [];
      if (idleConnections >= maxIdleConnections || ofHost.length >= maxIdlePerHost) return false;
      if (!mayKeep(connection.remoteAddress ?? "")) return false;
      if (ofHost.length === 0) kept.set(origin, ofHost);
      ofHost.push(connection);
      idleConnections++;
      connection.idleUntilMs = clock.monotonicMs() + idleMs;
      cancelSweep ??= clock.after(sweepEveryMs, sweep);
      return true;
    },
    onGone(connection: Connection): void {
      open.delete(connection);
      const ofHost = kept.get(connection.origin) ?? [];
      const at = ofHost.indexOf(connection);
      if (at >= 0) removeIdle(connection.origin, ofHost, at);
    },
  };
  /** Owner of those that are used only once. */
  const nobody = { keep: () => false, onGone: owner.onGone };

  function removeIdle(origin: string, ofHost: Connection[], at: number): void {
    ofHost.splice(at, 1);
    idleConnections--;
    if (ofHost.length === 0) kept.delete(origin);
  }

  function takeIdle(origin: string): Connection | undefined {
    const ofHost = kept.get(origin);
    const connection = ofHost?.at(-1);
    if (ofHost !== undefined) removeIdle(origin, ofHost, ofHost.length - 1);
    return connection;
  }

  function sweep(): void {
    const nowMs = clock.monotonicMs();
    for (const ofHost of [...kept.values()]) {
      for (const connection of ofHost.filter(({ idleUntilMs }) => idleUntilMs <= nowMs)) connection.end();
    }
    cancelSweep = idleConnections > 0 ? clock.after(sweepEveryMs, sweep) : undefined;
  }

  return {
    take(destination, fresh) {
      const idle = fresh ? undefined : takeIdle(destination.origin);
      if (idle !== undefined) return idle;
      const connection = new Connection(destination.origin, fresh ? nobody : owner);
      open.add(connection);
      try {
        dial(destination, connection);
      } catch (error) {
        // Not before the caller has sent its request, whose reader must be told.
        queueMicrotask(() => connection.fail(error instanceof Error ? error : new Error(String(error))));
      }
      return connection;
    },
    idle: () => idleConnections,
    close() {
      cancelSweep?.();
      tunnels?.close();
      for (const connection of [...open]) connection.fail(new Error("The connections of deliveries are closed"));
    },
  };
}
