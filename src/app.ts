import { jwt } from "@elysiajs/jwt";
import { staticPlugin } from "@elysiajs/static";
import { aboutRoutes } from "./accounts/about-routes.ts";
import { createAccounts } from "./accounts/accounts.ts";
import { announceChange } from "./accounts/announcement.ts";
import { createApiKeyAuthentication, createApiKeys, createKeyUse } from "./accounts/api-keys.ts";
import { credentialRoutes } from "./accounts/credential-routes.ts";
import { createLogin } from "./accounts/login.ts";
import { operatorRoutes } from "./accounts/operator-routes.ts";
import { createPasswords } from "./accounts/password.ts";
import { accountRoutes } from "./accounts/routes.ts";
import { createSessions, type TokenCodec } from "./accounts/session.ts";
import { sessionRoutes } from "./accounts/session-routes.ts";
import { createSigningKeys } from "./accounts/signing-keys.ts";
import { createApi } from "./api.ts";
import { createBillingCalendar } from "./billing/calendar.ts";
import { createPayments } from "./billing/payments.ts";
import { createPaystack } from "./billing/paystack/paystack.ts";
import type { PaymentProcessor } from "./billing/processor.ts";
import { billingRoutes } from "./billing/routes.ts";
import { createCallbackSender } from "./billing/sandbox/callback-sender.ts";
import { sandboxRoutes } from "./billing/sandbox/routes.ts";
import { createSandbox } from "./billing/sandbox/sandbox.ts";
import type { Config } from "./config.ts";
import { type DataDir, deriveSecret, openDataDir } from "./data-dir.ts";
import { createAddressPolicy } from "./delivery/address.ts";
import { createSender } from "./delivery/sender.ts";
import { createSenderThread } from "./delivery/sender-thread.ts";
import { createSigners } from "./delivery/signers.ts";
import { createSurroundings } from "./delivery/surroundings.ts";
import { createPreview, createTestDelivery } from "./delivery/test-delivery.ts";
import { createTransport } from "./delivery/transport.ts";
import { createEngine } from "./engine.ts";
import { unavailable } from "./errors.ts";
import { createIngest } from "./events/ingest.ts";
import { ingestRoutes } from "./events/ingest-routes.ts";
import { eventReadRoutes } from "./events/read-routes.ts";
import { createAnswers } from "./http/answers.ts";
import { createAuthenticate } from "./http/auth.ts";
import { createBodyRoom } from "./http/body-room.ts";
import { createClientAddress } from "./http/client-address.ts";
import { createConnectionShedder } from "./http/connection-shedder.ts";
import { createCrossSiteGuard } from "./http/cross-site-guard.ts";
import { findDashboard } from "./http/dashboard-files.ts";
import { assetHeaders, dashboardRoutes } from "./http/dashboard-routes.ts";
import { docsRoutes } from "./http/docs-routes.ts";
import type { ErasedEndpoint } from "./http/endpoint.ts";
import { createHealthBeacon } from "./http/health-beacon.ts";
import { healthRoutes } from "./http/health-routes.ts";
import { createMetrics } from "./http/metrics.ts";
import { metricsRoutes } from "./http/metrics-routes.ts";
import { pauseRoutes } from "./http/pause-routes.ts";
import { createReadiness } from "./http/readiness.ts";
import { createRunner } from "./http/run-endpoint.ts";
import { transportHeadersOf } from "./http/transport-security.ts";
import { createProxyWarning } from "./http/untrusted-proxy.ts";
import { createInboxAddresses } from "./inbox/addresses.ts";
import { createInbox } from "./inbox/inbox.ts";
import { inboxRoutes } from "./inbox/routes.ts";
import { createInboxSender } from "./inbox/sender.ts";
import { createBoundedLog } from "./lib/bounded-log.ts";
import type { Clock } from "./lib/clock.ts";
import type { Log } from "./lib/log.ts";
import { createVault } from "./lib/vault.ts";
import { createListener } from "./listener.ts";
import { createDescriptorWatch } from "./maintenance/descriptor-watch.ts";
import { createDiskWatch } from "./maintenance/disk-watch.ts";
import { createIdClockWatch } from "./maintenance/id-clock-watch.ts";
import { createStorageWatch } from "./maintenance/storage-watch.ts";
import { ownListenersOf } from "./own-listeners.ts";
import { createPauses } from "./pauses.ts";
import { pricesOf } from "./plans.ts";
import { replayRoutes } from "./replays/routes.ts";
import { withKeyCache } from "./store/key-cache.ts";
import { openStore, storageSizes } from "./store/open.ts";
import type { Store } from "./store/store.ts";
import { createHub } from "./stream/hub.ts";
import { streamRoutes } from "./stream/routes.ts";
import { webhookRoutes } from "./webhooks/routes.ts";
import { allowInbox } from "./webhooks/webhooks.ts";

export interface App {
  /** Listens, and begins to deliver what is pending. @throws StartupError when the port is taken */
  start(): Promise<{ url: string; port: number }>;
  /**
   * Begins nothing new and lets attempts in flight end, while requests are served; then turns those away, closes streams and
   * database.
   * @returns false when attempts were broken off; they are made again at the next start
   */
  stop(): Promise<boolean>;
  /** See `Listener`. */
  reloadCertificate(): boolean;
  /** Resolves when nothing is queued, in flight or due. */
  whenIdle(): Promise<void>;
  readonly endpoints: readonly ErasedEndpoint[];
  readonly store: Store;
}

export interface AppDeps {
  clock: Clock;
  log: Log;
  /** The data directory, when it has been entered already. @default openDataDir */
  enteredDataDir?: DataDir;
  /** 0 to 1; for the jitter of retries. @default Math.random */
  random?: () => number;
  /** Most pages of the database; tests make a full disk with it. */
  maxPageCount?: number;
  /** Stands between the program and its store; tests make faults with it. */
  wrapStore?: (store: Store) => Store;
  /** False: deliveries are signed and sent on this thread, by the given clock. @default true */
  senderThread?: boolean;
  /** Seconds; tests of slow clients have less patience. @default idleTimeoutSeconds */
  idleTimeout?: number;
  /** Tests of clients that do not read have less patience. @default readerPatienceMs */
  readerPatienceMs?: number;
}

/** How long attempts in flight may take to end when the program is stopped (an attempt takes 10 s at most). */
const drainMs = 8000;

/**
 * The composition root: every object is built here, once, and nowhere else.
 * @throws StartupError with what to do
 */
export function createApp(config: Config, deps: AppDeps): App {
  const { clock, random = Math.random, maxPageCount, idleTimeout } = deps;
  const { wrapStore = (store) => store, senderThread = true, readerPatienceMs } = deps;
  const log = createBoundedLog({
    log: deps.log,
    clock,
    // Each of them is an act of the operator, and who does what is never too much.
    always: (event) => event === "operator.acted",
    onLeftOut: () => metrics.lineLeftOut(),
  });
  const warn = (message: string) => log.write("warn", "storage.warning", { message });
  const dataDir = deps.enteredDataDir ?? openDataDir(config.dataDir, warn);
  const vault = createVault(dataDir.secrets.masterKey);
  const minFreeBytes = config.minFreeDiskBytes;
  const disk = createDiskWatch({ folder: dataDir.path, minFreeBytes, clock, log });
  const { hasRoom } = disk;
  const shedder = createConnectionShedder({
    port: () => api.server?.port ?? 0,
    closeIdle: () => api.server?.closeIdleConnections() ?? 0,
  });
  const descriptors = createDescriptorWatch({
    clock,
    log,
    shed(count) {
      const closed = shedder.shed(count);
      metrics.connectionsShed(closed);
      return closed;
    },
  });
  let { operatorToken } = dataDir.secrets;
  const pauses = createPauses(config.paused, (what) => {
    if (what === "deliveries") dispatcher.hold(false);
    else payments?.biller.start();
  });
  const metrics = createMetrics({
    isPaused: pauses.isPaused,
    queueDepth: () => store.queueDepth(),
    now: () => clock.now(),
    openStreams: () => hub.openStreams,
    inFlight: () => dispatcher.inFlight,
    disk: () => ({ freeBytes: disk.freeBytes(), floorBytes: minFreeBytes }),
    storage: () => storageSizes(dataDir.path),
    descriptors: descriptors.count,
  });
  const storage = createStorageWatch({ clock, log, onFailure: metrics.storageFailed });
  const store = openStoreIn(dataDir);
  const hub = createHub({ clock, log });
  const answers = createAnswers({
    clock,
    log,
    largestEntryBytes: config.maxBodyBytes,
    ...(readerPatienceMs !== undefined && { patienceMs: readerPatienceMs }),
  });
  const signers = createSigners({ store, vault, clock });

  /** Known as soon as the port is. */
  let baseUrl = config.publicUrl ?? "";
  let listenerUrl = "";
  /** Filled as soon as the port is known. */
  const ownListeners: { host: string; port: number }[] = [];
  const { localMode, allowTargets, blockTargets } = config;
  const policyOptions = { localMode, allowTargets, blockTargets, ownListeners };
  const outbound = {
    ...(config.dnsServers.length > 0 && { dnsServers: config.dnsServers }),
    ...(config.extraCa !== null && { extraCa: config.extraCa }),
  };
  const surroundings = createSurroundings({ ...outbound, clock });
  const policy = createAddressPolicy(policyOptions, surroundings);
  const onConnection = metrics.connected;
  const network = senderThread
    ? createSenderThread({ settings: () => ({ ...outbound, policy: policyOptions }), clock, log, onConnection })
    : createSender(createTransport({ ...outbound, policy, clock, onConnection }));
  const inboxAddresses = createInboxAddresses({ secret: deriveSecret(dataDir, "inbox"), baseUrl: () => baseUrl });
  const inbox = createInbox({ store, clock, log, announce: (tenant) => announceChange(hub, tenant, "inbox") });
  const sender = createInboxSender({ addresses: inboxAddresses, inbox, network });
  const engine = createEngine({
    store,
    clock,
    log,
    hub,
    metrics,
    signers,
    sender,
    retryScheduleMs: config.retryScheduleMs,
    random,
    webhookConcurrency: config.webhookConcurrency,
    deliveryRates: config.deliveryRates,
  });
  const { dispatcher, deliveries, replayer, pace } = engine;

  const codec = jwt({ name: "jwt", secret: dataDir.secrets.sessionSecret, alg: "HS256" }).decorator
    .jwt as unknown as TokenCodec;
  const sessions = createSessions({ codec, store, clock });
  const keyUse = createKeyUse({ store, clock });
  const passwords = createPasswords();
  const onFailure = () => metrics.loginFailed("account");
  const login = createLogin({ store, clock, passwords, log, localMode, onFailure });
  const settings = { signup: config.signup, localMode: config.localMode };
  const own = config.payments.kind === "sandbox" ? createOwnProcessor() : null;
  const sandbox = own?.sandbox ?? null;
  const processor: PaymentProcessor | null =
    config.payments.kind === "paystack" ? createPaystack({ ...config.payments, clock }) : sandbox;
  const prices = pricesOf(config);
  const payments =
    processor &&
    createPayments({
      store,
      clock,
      log,
      vault,
      processor,
      calendar: createBillingCalendar(config.billingTimeZone),
      prices,
      isPaused: () => pauses.isPaused("charges"),
      referenceSecret: deriveSecret(dataDir, "charge references"),
      baseUrl: () => baseUrl,
      announce(tenant) {
        // A payment may have brought another plan.
        deliveries.adoptPlan(tenant);
        announceChange(hub, tenant, "billing");
      },
      removeTenant: (tenant) => accounts.remove(tenant),
      changeEmail: (tenant, email) => accounts.changeEmail(tenant, email),
      onUnknownLookUp: metrics.lookUpUnknown,
    });
  const accounts = createAccounts({
    store,
    clock,
    vault,
    policy,
    deliveries,
    hub,
    answers,
    signers,
    passwords,
    payments,
    settings,
    log,
  });
  const apiKeys = createApiKeys({ store, clock, vault });
  const signingKeys = createSigningKeys({ store, clock, vault, signers });
  const ingest = createIngest({ store, dispatcher, announce: engine.announceAccepted });

  const readiness = createReadiness({ store, hasRoom, clock });
  const { host, healthPort } = config;
  const beacon = healthPort === null ? null : createHealthBeacon({ host, port: healthPort, readiness, clock });

  const dashboard = findDashboard();
  const endpoints = [
    ...aboutRoutes({ config, prices, pauses, baseUrl: () => baseUrl }),
    ...accountRoutes({ store, clock, accounts, onPoll: (tenant) => payments?.poll(tenant) }),
    ...billingRoutes({ store, clock, log, prices, payments }),
    ...(sandbox ? sandboxRoutes({ sandbox }) : []),
    ...sessionRoutes({ store, sessions, login, hub }),
    ...credentialRoutes({ accounts, apiKeys, signingKeys, hub }),
    ...webhookRoutes({
      store,
      clock,
      policyOf: (tenant) => allowInbox(policy, inboxAddresses.urlOf(tenant.id)),
      deliveries,
      hub,
      sendTest: createTestDelivery({ signers, sender, clock, pace }),
      isPaused: () => pauses.isPaused("deliveries"),
    }),
    ...inboxRoutes({ store, addresses: inboxAddresses, hub }),
    ...ingestRoutes({ ingest, maxBodyBytes: config.maxBodyBytes }),
    ...replayRoutes({ store, clock, hub, deliveries, replayer, bulkReplaysPerDay: config.bulkReplaysPerDay }),
    ...eventReadRoutes({ store, clock, preview: createPreview({ signers, clock }) }),
    ...streamRoutes({ hub, sessions }),
    ...operatorRoutes({ accounts, apiKeys, signingKeys, store, clock, log, rotateToken }),
    ...healthRoutes({ readiness, isStopping: () => stopping }),
    ...pauseRoutes({ pauses, log }),
    ...metricsRoutes({ metrics, isPublic: !config.localMode }),
    ...docsRoutes(),
    ...dashboardRoutes(dashboard),
  ];

  metrics.expect(endpoints);
  const addressOf = createClientAddress(config.trustedProxies);
  const warnOfProxy = createProxyWarning(config.trustedProxies, log);
  const run = createRunner({
    authenticate: createAuthenticate({
      sessions,
      authenticateApiKey: createApiKeyAuthentication({ store, clock, keyUse }),
      operatorToken: () => operatorToken,
      metricsToken: config.metricsToken,
      onWrongToken(access, address) {
        metrics.loginFailed("operator");
        log.write("warn", "operator.refused", { address, access });
      },
    }),
    clientAddress(socketAddress, headers) {
      warnOfProxy(socketAddress, headers);
      return addressOf(socketAddress, headers);
    },
    bodyRoom: createBodyRoom(),
    answers,
    log,
    onAnswer: metrics.answered,
    onRefusal: metrics.refused,
    monotonicMs: clock.monotonicMs,
  });
  /** Nothing new is begun; what comes in is served until what is in flight has ended. */
  let stopping = false;
  /** The last moment: requests are turned away. */
  let draining = false;
  const transportHeaders = transportHeadersOf(config);
  const api = createApi({
    endpoints,
    run,
    localMode: config.localMode,
    refuseCrossSite: createCrossSiteGuard({ publicUrl: () => baseUrl, port: () => api.server?.port }),
    log,
    publicUrl: () => baseUrl,
    transportHeaders,
    isDraining: () => draining,
    onRefusal: metrics.refused,
    ...(idleTimeout !== undefined && { idleTimeout }),
  });

  const listener = createListener({ api, config, clock, log });

  return {
    endpoints,
    store,
    reloadCertificate: listener.reloadCertificate,
    whenIdle: () => dispatcher.whenIdle(),

    async start() {
      if (dashboard) api.use(await assetsOf(dashboard.assetsFolder));
      const { hostname, port } = listener.listen();
      ownListeners.push(...ownListenersOf(config, port));
      if (beacon) {
        const probes = await beacon.start();
        ownListeners.push(...ownListenersOf({ ...config, publicUrl: null }, probes));
        log.write("info", "server.probes", { host, port: probes });
      }
      const scheme = config.tls ? "https" : "http";
      baseUrl = config.publicUrl ?? `${scheme}://localhost:${port}`;
      listenerUrl = `${scheme}://${hostname.includes(":") ? `[${hostname}]` : hostname}:${port}`;
      dataDir.announce({ pid: process.pid, url: listenerUrl }, warn);
      for (const what of pauses.paused())
        log.write("warn", "server.paused", { what, resume: `postrider resume ${what}` });
      if (pauses.isPaused("deliveries")) dispatcher.hold(true);
      await engine.start();
      if (!pauses.isPaused("charges")) payments?.biller.start();
      descriptors.start();
      if (config.foreignVariables.length > 0) warnOfForeignVariables();
      const url = baseUrl;
      log.write("info", "server.started", { url, mode: config.localMode ? "local" : "public" });
      return { url, port };
    },

    async stop() {
      stopping = true;
      beacon?.drain();
      if (listenerUrl !== "") dataDir.announce({ pid: process.pid, url: listenerUrl, stopping }, warn);
      const left = await engine.stop(drainMs, payments?.biller.stop());
      draining = true;
      await own?.callbackSender.stop();
      sender.close();
      surroundings.close();
      hub.closeAll();
      answers.closeAll();
      await Promise.allSettled([engine.flush(), keyUse.flush()]);
      await listener.stop();
      descriptors.stop();
      await store.close();
      beacon?.stop();
      dataDir.release();
      log.write("info", "server.stopped", { brokenOff: left });
      return left === 0;
    },
  };

  function warnOfForeignVariables(): void {
    log.write("warn", "config.foreign_variables", {
      names: config.foreignVariables.join(", "),
      message:
        "They look like settings, but a container platform has put them there for a service of this name, so they " +
        "are passed over. Try: enableServiceLinks: false, or another name for the service.",
    });
  }

  function rotateToken(): string {
    try {
      operatorToken = dataDir.rotateOperatorToken();
    } catch (error) {
      log.write("error", "operator.token_not_written", { error: String(error) });
      throw unavailable("The data directory does not take a new token; the old one holds.", "storage_unavailable", 30);
    }
    return operatorToken;
  }

  /** The page itself is a route of ours, because files go out without its headers. */
  function assetsOf(folder: string) {
    return staticPlugin({
      assets: folder,
      prefix: "/assets",
      alwaysStatic: true,
      headers: { ...assetHeaders, ...transportHeaders },
      // The plugin's are no valid ones (RFC 9110, section 8.8.3), and nobody asks again for what never changes.
      etag: false,
      silent: true,
    });
  }

  function createOwnProcessor() {
    const secret = deriveSecret(dataDir, "sandbox payment processor");
    const callbackSender = createCallbackSender({ url: () => `${listenerUrl}/pay/callback`, clock, log });
    const { post: postCallback } = callbackSender;
    const sandbox = createSandbox({ store, clock, secret, publicUrl: () => baseUrl, postCallback });
    return { sandbox, callbackSender };
  }

  function openStoreIn({ path, release }: DataDir): Store {
    try {
      const opened = openStore({
        dataDir: path,
        clock,
        vault,
        hasRoom,
        onCommit(commit) {
          metrics.committed(commit);
          storage.committed();
        },
        onFailure: storage.failed,
        onAhead: createIdClockWatch(log, clock.now),
        warn,
        ...(maxPageCount !== undefined && { maxPageCount }),
      });
      return withKeyCache(wrapStore(opened));
    } catch (error) {
      release();
      throw error;
    }
  }
}
