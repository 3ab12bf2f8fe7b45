import type { Api } from "./api.ts";
import type { Config } from "./config.ts";
import { StartupError } from "./domain/errors.ts";
import { type CertificatePair, createCertificateWatch } from "./http/certificate-watch.ts";
import { tlsSuites } from "./http/transport-security.ts";
import type { Clock } from "./lib/clock.ts";
import { messageOf } from "./lib/error-message.ts";
import type { Log } from "./lib/log.ts";

/** Where the program listens, with the certificate of the moment. */
export interface Listener {
  /** @throws StartupError when the port is taken */
  listen(): { hostname: string; port: number };
  /** Reads certificate and key anew. Requests and streams under way go on. @returns false without TLS */
  reloadCertificate(): boolean;
  /** Takes no more connections; resolves when every request has its answer. */
  stop(): Promise<void>;
}

export interface ListenerDeps {
  api: Api;
  config: Pick<Config, "host" | "port" | "tls">;
  clock: Clock;
  log: Log;
}

const listenAgainMs = 1000;

export function createListener({ api, config, clock, log }: ListenerDeps): Listener {
  const { host: hostname, tls } = config;
  const watch = tls && createCertificateWatch({ tls, clock, log, use: replaceWith });
  let certificate: CertificatePair | null = tls;
  /** Those with an earlier certificate; each ends with its last request. */
  const former: Promise<void>[] = [];
  let stopped = false;

  /**
   * The runtime cannot give a listener another certificate, so another listener takes its place in the same instant. Were
   * the port shared for a moment, no connection would be refused, but as many would be reset: what has no request under way,
   * the former listener closes.
   */
  function replaceWith(pair: CertificatePair): void {
    const { server } = api;
    if (!server?.port || stopped) return;
    const { port } = server;
    former.push(server.stop(false));
    try {
      listenOn(port, pair);
      certificate = pair;
    } catch (error) {
      listenAgain(port);
      throw error;
    }
  }

  /** With what was good until now. The port is free, unless somebody has taken it in that instant. */
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
        // The framework's defaults would let a second server share the port unnoticed, and show errors as a developer wants them.
        reusePort: false,
        development: false,
        ...(pair && { tls: { cert: pair.cert, key: pair.key, ciphers: tlsSuites } }),
      });
    } catch (error) {
      throw new StartupError(
        `The server cannot listen on ${hostname}:${port} (${messageOf(error)}). ` +
          "Try: stop whatever uses that port, or set POSTRIDER_PORT to another one.",
      );
    }
    // The framework's, one for each listener: they would stop a server that this program stops by itself.
    for (const hook of process.listeners("beforeExit")) if (!hooks.includes(hook)) process.off("beforeExit", hook);
    if (api.server?.port) return api.server.port;
    throw new StartupError("The server did not start listening. Try: set POSTRIDER_HOST and POSTRIDER_PORT.");
  }

  return {
    listen() {
      const port = listenOn(config.port, tls);
      watch?.start();
      return { hostname, port };
    },
    reloadCertificate() {
      watch?.reload();
      return watch !== null;
    },
    async stop() {
      stopped = true;
      watch?.stop();
      await Promise.all([...former, api.server?.stop(false)]);
    },
  };
}
