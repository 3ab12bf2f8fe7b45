import type { Api } from "./api.ts";
import type { Config } from "./config.ts";
import { StartupError } from "./domain/errors.ts";
import { createCertificateWatch } from "./http/certificate-watch.ts";
import { cannotListen, listenFaultOf, refuseSharing } from "./http/listen-fault.ts";
import type { ListenerPause } from "./http/listener-pause.ts";
import { canSharePorts, steerConnections } from "./http/shared-port.ts";
import { tlsSuites } from "./http/transport-security.ts";
import type { CertificatePair } from "./lib/certificate.ts";
import type { Clock } from "./lib/clock.ts";
import { messageOf } from "./lib/error-message.ts";
import type { Log } from "./lib/log.ts";
import type { Reception } from "./reception.ts";

/** Where the program listens, with the current certificate. */
export interface Listener {
  /** @throws StartupError when it cannot listen there */
  listen(): { hostname: string; port: number };
  /**
   * Keeps all new connections, and the certificate, although a successor starts sharing the port.
   * @returns what to call if none takes over after all; null when this is not possible
   */
  keepPort(): (() => void) | null;
  /** How many requests are being answered. */
  underWay(): number;
  /** Rereads certificate and key. Requests and streams under way go on. @returns false without TLS */
  reloadCertificate(): boolean;
  /** Takes no more connections; resolves when every request has been answered. */
  stop(): Promise<void>;
}

export interface ListenerDeps {
  api: Api;
  config: Pick<Config, "host" | "port" | "tls">;
  clock: Clock;
  log: Log;
  /** Holds what comes to the port in the meantime; null when no server was there before. */
  reception: Reception | null;
  pause: Pick<ListenerPause, "learn" | "whileClosing">;
  /** Whether answers are to close their connections, so that clients come to the new listener. */
  onMoving(moving: boolean): void;
}

const listenAgainMs = 1000;

/**
 * For this long after a change of the certificate, each answer is the last one on its connection. By then, clients that
 * keep a connection are on the new listener, and what the former one closes is idle, or under way.
 */
const moveMs = 5000;

export function createListener({ api, config, clock, log, reception, pause, onMoving }: ListenerDeps): Listener {
  const { host: hostname, tls } = config;
  const watch = tls && createCertificateWatch({ tls, clock, log, canChange, use: replaceWith });
  let certificate: CertificatePair | null = tls;
  /** The listeners that share the port, in the system's order (`steerConnections`); all but one have an earlier certificate. */
  const sharing: Bun.Server<unknown>[] = [];
  const closing = new Map<Bun.Server<unknown>, () => void>();
  /** Each resolves with its listener's last request. */
  const ending: Promise<void>[] = [];
  const close = (server: Bun.Server<unknown>) => pause.whileClosing(() => server.stop(false));
  const isInUse = (server: Bun.Server<unknown>) => server === api.server;
  /** The reception before this listener still has a place on the port. */
  let isHeld = false;
  /** A successor may be sharing the port. */
  let isKept = false;
  let stopped = false;

  /** The places that `steerConnections` counts are known only while no listener but these shares the port. */
  function canChange(): boolean {
    return !isHeld && !isKept;
  }

  /** The runtime cannot give a listener another certificate, so another listener takes its place. */
  function replaceWith(pair: CertificatePair): void {
    const { server: former } = api;
    if (!former?.port || stopped) return;
    if (canSharePorts()) moveFrom(former, former.port, pair);
    else swap(former, former.port, pair);
  }

  /** The new one gets everything that comes from now on, and the former answers what it has before it closes. */
  function moveFrom(former: Bun.Server<unknown>, port: number, pair: CertificatePair): void {
    listenOn(port, pair);
    certificate = pair;
    if (!steerConnections(port, sharing.length - 1)) {
      leave(former, port);
      return;
    }
    onMoving(true);
    closing.set(
      former,
      clock.after(moveMs, () => leave(former, port)),
    );
  }

  function leave(former: Bun.Server<unknown>, port: number): void {
    closing.delete(former);
    if (closing.size === 0) onMoving(false);
    ending.push(close(former));
    const place = sharing.indexOf(former);
    const last = sharing.pop();
    if (last && last !== former) sharing[place] = last;
    if (sharing.length > 1) steerConnections(port, sharing.findIndex(isInUse));
  }

  /**
   * Where ports cannot be shared: swaps them in the same instant. The former listener closes connections with no request
   * under way.
   */
  function swap(former: Bun.Server<unknown>, port: number, pair: CertificatePair): void {
    sharing.length = 0;
    ending.push(close(former));
    try {
      listenOn(port, pair);
      certificate = pair;
    } catch (error) {
      listenAgain(port);
      throw error;
    }
  }

  /** Listens with the certificate that was good until now. The port is free, unless somebody has taken it in that instant. */
  function listenAgain(port: number): void {
    if (stopped) return;
    try {
      listenOn(port, certificate);
    } catch (error) {
      log.write("error", "server.not_listening", { error: messageOf(error) });
      clock.after(listenAgainMs, () => listenAgain(port));
    }
  }

  function listenOn(port: number, pair: CertificatePair | null): number {
    const hooks = process.listeners("beforeExit");
    try {
      api.listen({
        hostname,
        port,
        reusePort: canSharePorts(),
        // The framework's default shows errors in a form meant for developers.
        development: false,
        ...(pair && { tls: { cert: pair.cert, key: pair.key, ciphers: tlsSuites } }),
      });
    } catch (error) {
      throw refused(port, error);
    }
    // The framework's hooks, one for each listener: they would stop a server that this program stops itself.
    for (const hook of process.listeners("beforeExit")) if (!hooks.includes(hook)) process.off("beforeExit", hook);
    if (api.server?.port) {
      sharing.push(api.server);
      pause.learn(api.server.port);
      return api.server.port;
    }
    throw new StartupError("The server did not start listening. Try: set POSTRIDER_HOST and POSTRIDER_PORT.");
  }

  /** Refuses a second server; one that takes over shares the port for a moment. */
  function refuseSecond(): void {
    if (config.port === 0 || reception !== null || !canSharePorts()) return;
    try {
      refuseSharing(hostname, config.port);
    } catch (error) {
      throw refused(config.port, error);
    }
  }

  const refused = (port: number, error: unknown) =>
    cannotListen("The server", { host: hostname, port, setting: "POSTRIDER_PORT" }, listenFaultOf(error));

  /**
   * The predecessor's listener has closed, so this one has the second place, to which the port is already steered; or it
   * goes on in the first one.
   */
  function takeFrom(held: Reception): void {
    held.open((request) => api.fetch(request));
    isHeld = true;
    clock.after(moveMs, () => {
      // Its place on the port is free at once, although a stream that it has may last for hours.
      ending.push(pause.whileClosing(held.close));
      isHeld = false;
    });
  }

  return {
    listen() {
      refuseSecond();
      const port = listenOn(config.port, tls);
      watch?.start();
      if (reception !== null) takeFrom(reception);
      return { hostname, port };
    },
    keepPort() {
      // A group of one: it has the first place, and the successor's gets the second.
      const isAlone = sharing.length === 1 && !isHeld;
      if (!isAlone || api.server?.port === undefined || !steerConnections(api.server.port, 0)) return null;
      isKept = true;
      return () => {
        isKept = false;
      };
    },
    underWay: () => sharing.reduce((sum, server) => sum + server.pendingRequests, 0),
    reloadCertificate() {
      watch?.reload();
      return watch !== null;
    },
    async stop() {
      stopped = true;
      watch?.stop();
      for (const cancel of closing.values()) cancel();
      await Promise.all([...ending, ...sharing.map(close)]);
    },
  };
}
