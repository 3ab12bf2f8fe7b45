import { createApi, dashboardAssets } from "./api.ts";
import type { Config } from "./config.ts";
import { createAcceptLimit } from "./http/accept-limit.ts";
import type { Answers } from "./http/answers.ts";
import { createBodyRoom } from "./http/body-room.ts";
import { createClientAddress } from "./http/client-address.ts";
import { type ConnectionShedder, createConnectionShedder } from "./http/connection-shedder.ts";
import { createCrossSiteGuard } from "./http/cross-site-guard.ts";
import type { ErasedEndpoint } from "./http/endpoint.ts";
import type { ListenerPause } from "./http/listener-pause.ts";
import type { Metrics } from "./http/metrics.ts";
import { createResponder, type ResponderDeps } from "./http/respond.ts";
import { transportHeadersOf } from "./http/transport-security.ts";
import { createProxyWarning } from "./http/untrusted-proxy.ts";
import { inboxPath } from "./inbox/addresses.ts";
import type { Clock } from "./lib/clock.ts";
import type { Log } from "./lib/log.ts";
import { createListener, type Listener } from "./listener.ts";
import type { Reception } from "./reception.ts";

/** The part that answers requests. */
export interface Server
  extends Pick<Listener, "keepPort" | "reloadCertificate" | "stop" | "underWay">,
    ConnectionShedder {
  /** @returns the port. @throws StartupError when it cannot listen there */
  listen(): Promise<number>;
  /** The last moment: from now on requests are turned away. */
  turnAway(): void;
  /** The health probes have a port of their own. A flood of connections there takes the same descriptors as one here. */
  alsoGuard(port: number): void;
  /** A successor is about to take the port: from now on each answer is the last one on its connection. */
  sendElsewhere(): void;
}

export interface ServerDeps {
  endpoints: readonly ErasedEndpoint[];
  authenticate: ResponderDeps["authenticate"];
  answers: Answers;
  config: Pick<Config, "host" | "port" | "tls" | "publicUrl" | "localMode" | "trustedProxies" | "payments">;
  /** Where others reach it; see `ServerAddress`. */
  publicUrl(): string;
  /** Scripts and styles of the dashboard; null when it was not built. */
  assetsFolder: string | null;
  unknownPage: (() => Response) | null;
  clock: Clock;
  log: Log;
  metrics: Metrics;
  pause: ListenerPause;
  /** Called when a request has come. */
  onRequest(): void;
  /** See `Reception`; null: no server was here before. */
  reception: Reception | null;
  /** Seconds. @default idleTimeoutSeconds */
  idleTimeout?: number | undefined;
}

export function createServer(deps: ServerDeps): Server {
  const { endpoints, authenticate, answers, config, publicUrl, clock, log, metrics, idleTimeout } = deps;
  const { assetsFolder, unknownPage, onRequest, reception, pause } = deps;
  const addressOf = createClientAddress(config.trustedProxies);
  const warnOfProxy = createProxyWarning(config.trustedProxies, log);
  const transportHeaders = transportHeadersOf(config);
  const isSelling = config.payments.kind !== "off";
  let draining = false;
  /** To a listener with another certificate, for some seconds, and to a successor, for good. */
  let changesListener = false;
  let isSucceeded = false;

  metrics.expect(endpoints);
  const respond = createResponder({
    authenticate,
    clientAddress(socketAddress, headers) {
      warnOfProxy(socketAddress, headers);
      return addressOf(socketAddress, headers);
    },
    onForwarded: warnOfProxy,
    bodyRoom: createBodyRoom(),
    answers,
    log,
    onAnswer: metrics.answered,
    onRefusal: metrics.refused,
    isSelling,
    monotonicMs: clock.monotonicMs,
  });
  const acceptLimit = createAcceptLimit({ pause: pause.reason(), monotonicMs: clock.monotonicMs });
  const api = createApi({
    endpoints,
    respond,
    sealedPaths: [inboxPath],
    unknownPage,
    localMode: config.localMode,
    isSelling,
    refuseCrossSite: createCrossSiteGuard({ publicUrl, port: () => api.server?.port }),
    log,
    publicUrl,
    transportHeaders,
    isDraining: () => draining,
    isMoving: () => changesListener || isSucceeded,
    noteRequest(request, source) {
      acceptLimit.note(request, source);
      onRequest();
    },
    addressOf: reception?.addressOf ?? null,
    onRefusal: metrics.refused,
    ...(idleTimeout !== undefined && { idleTimeout }),
  });
  const listener = createListener({
    api,
    config,
    clock,
    log,
    reception,
    pause,
    onMoving: (now) => (changesListener = now),
  });
  const otherPorts: number[] = [];
  const shedder = createConnectionShedder({
    ports: () => [api.server?.port ?? 0, ...otherPorts],
    closeIdle: () => api.server?.closeIdleConnections() ?? 0,
  });

  return {
    async listen() {
      if (assetsFolder !== null) api.use(await dashboardAssets(assetsFolder, transportHeaders));
      return listener.listen().port;
    },
    keepPort: listener.keepPort,
    underWay: listener.underWay,
    reloadCertificate: listener.reloadCertificate,
    shed(count) {
      const closed = shedder.shed(count);
      metrics.connectionsShed(closed);
      return closed;
    },
    turnAway() {
      draining = true;
    },
    alsoGuard(port) {
      otherPorts.push(port);
      pause.learn(port);
    },
    sendElsewhere() {
      isSucceeded = true;
    },
    stop: listener.stop,
  };
}
