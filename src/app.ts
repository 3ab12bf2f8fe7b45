import { hostname } from "node:os";
import { jwt } from "@elysiajs/jwt";
import { aboutRoutes } from "./accounts/about-routes.ts";
import { createAccounts } from "./accounts/accounts.ts";
import { createApiKeyAuthentication, createApiKeys, createKeyUse } from "./accounts/api-keys.ts";
import { credentialRoutes } from "./accounts/credential-routes.ts";
import { createLogin } from "./accounts/login.ts";
import { createPasswords, type PasswordCost } from "./accounts/password.ts";
import { createPasswordResets, openResetFact } from "./accounts/password-reset.ts";
import { passwordResetRoutes } from "./accounts/password-reset-routes.ts";
import { accountRoutes } from "./accounts/routes.ts";
import { sessionRoutes } from "./accounts/session-routes.ts";
import { createSigningKeys } from "./accounts/signing-keys.ts";
import { createStorageBytes } from "./accounts/storage-bytes.ts";
import { createNoteAct } from "./audit/note.ts";
import { auditRoutes } from "./audit/routes.ts";
import { createStrangers } from "./audit/strangers.ts";
import { createBackups, type RunOwn } from "./backup/backups.ts";
import { locate } from "./backup/locate.ts";
import { asFolder } from "./backup/place.ts";
import { backupRoutes } from "./backup/routes.ts";
import { createBilling } from "./billing/billing.ts";
import { billingRoutes } from "./billing/routes.ts";
import { sandboxRoutes } from "./billing/sandbox/routes.ts";
import { type Config, diskFloorOf } from "./config.ts";
import { listenersIn, listenersText } from "./delivery/network/own-listeners.ts";
import { createNetwork } from "./delivery/outbound.ts";
import { createHeaderVault } from "./delivery/own-headers.ts";
import { createOwnTimes } from "./delivery/own-times.ts";
import { createSigners } from "./delivery/signers.ts";
import { createPauses } from "./domain/pauses.ts";
import { createEngine } from "./engine.ts";
import { createBackpressure } from "./events/backpressure.ts";
import { failureRoutes } from "./events/failure-routes.ts";
import { createIngest } from "./events/ingest.ts";
import { ingestRoutes } from "./events/ingest-routes.ts";
import { eventReadRoutes } from "./events/read-routes.ts";
import { createChangeHeeder } from "./heed-changes.ts";
import { createLeaseHeeder } from "./heed-lease.ts";
import { type Home, leftOnce } from "./home.ts";
import { createAnswers } from "./http/answers.ts";
import { createAuthenticate } from "./http/auth.ts";
import { findDashboard } from "./http/dashboard-files.ts";
import { dashboardRoutes, unknownPage } from "./http/dashboard-routes.ts";
import { docsRoutes } from "./http/docs-routes.ts";
import type { Access, ErasedEndpoint } from "./http/endpoint.ts";
import { createHealthBeacon } from "./http/health-beacon.ts";
import { healthRoutes } from "./http/health-routes.ts";
import { createListenerPause } from "./http/listener-pause.ts";
import { createMetrics } from "./http/metrics.ts";
import { metricsRoutes } from "./http/metrics-routes.ts";
import { createReadiness } from "./http/readiness.ts";
import { createSessions, sessionClaims } from "./http/session.ts";
import { createInboxAddresses } from "./inbox/addresses.ts";
import { createInbox } from "./inbox/inbox.ts";
import { inboxRoutes } from "./inbox/routes.ts";
import { createInboxSender } from "./inbox/sender.ts";
import { createBoundedLog } from "./lib/bounded-log.ts";
import type { Clock } from "./lib/clock.ts";
import type { DatabaseTime } from "./lib/database-clock.ts";
import { stackOf } from "./lib/error-message.ts";
import type { Log } from "./lib/log.ts";
import { createBusyTime, createThreads } from "./lib/threads.ts";
import { createLifecycle, type Lifecycle } from "./lifecycle.ts";
import { createMail } from "./mail/mail.ts";
import { mailRoutes } from "./mail/routes.ts";
import { createMachineWatch } from "./maintenance/machine-watch.ts";
import { createBrowserSessions } from "./operator/browser-session.ts";
import { chargeRoutes } from "./operator/charge-routes.ts";
import { configRoutes } from "./operator/config-routes.ts";
import { createKeyRotation } from "./operator/key-rotation.ts";
import { keyRoutes } from "./operator/key-routes.ts";
import { createMasterKeys, sealedWhile } from "./operator/master-keys.ts";
import { nodeRoutes } from "./operator/node-routes.ts";
import { pauseRoutes } from "./operator/pause-routes.ts";
import { type Restart, restartRoutes } from "./operator/restart-routes.ts";
import { operatorRoutes } from "./operator/routes.ts";
import { operatorSessionRoutes } from "./operator/session-routes.ts";
import { statusRoutes } from "./operator/status-routes.ts";
import { createOperatorToken } from "./operator/token.ts";
import type { Reception } from "./reception.ts";
import { replayRoutes } from "./replays/routes.ts";
import { sealedContexts } from "./sealed-contexts.ts";
import { asOthersHave, deriveSecret, outlivingSecrets, type Secrets, sharedSecretsOf } from "./secrets.ts";
import { createServer } from "./server.ts";
import { createServerAddress } from "./server-address.ts";
import type { SettingInForce } from "./settings-in-force.ts";
import { openStore, storeFolderOf } from "./store/open.ts";
import type { OpenedStore } from "./store/opened.ts";
import type { Store } from "./store/store.ts";
import { announceChange } from "./stream/account-change.ts";
import { createHub, maxStreamsInAll } from "./stream/hub.ts";
import { streamRoutes } from "./stream/routes.ts";
import { webhookRoutes } from "./webhooks/routes.ts";
import { createPreview, createTestDelivery } from "./webhooks/test-delivery.ts";
import { allowInbox } from "./webhooks/webhooks.ts";

export interface App extends Lifecycle, Pick<OpenedStore, "store" | "sandboxBooks"> {
  /** See `Listener`. */
  keepPort(): (() => void) | null;
  /** See `Listener`. */
  reloadCertificate(): boolean;
  /** Resolves when nothing is queued, in flight or due. */
  whenIdle(): Promise<void>;
  readonly endpoints: readonly ErasedEndpoint[];
}

export interface AppDeps {
  clock: Clock;
  log: Log;
  /** See `BoundedLogOptions`. */
  isLogBehind?(): boolean;
  secrets: Secrets;
  /** The store's. The disk that must not fill up is its own, or that of the database if this has a link to it. */
  storeFolder: string;
  /** Entered for this server, which leaves it at the end, or if it cannot be built. */
  home: Home;
  /** Runs, in a process of its own, what cannot be done alongside the store in this one. */
  runOwn: RunOwn;
  /** 0 to 1; for the jitter of retries. @default Math.random */
  random?: () => number;
  /** Maximum number of database pages; tests simulate a full disk with it. */
  maxPageCount?: number;
  /** Cost of password hashes; tests have nothing to guard. @default OWASP's minimum */
  passwordCost?: PasswordCost;
  /** `waived`: a database server may lose what it has acknowledged; those of tests do. @default "required" */
  durability?: "required" | "waived";
  /** Sits between the program and its store; tests inject faults with it. */
  wrapStore?: (store: Store) => Store;
  /** False: deliveries are always signed and sent on this thread, by the given clock. @default true */
  senderThread?: boolean;
  /** Seconds; tests of slow clients have less patience. @default idleTimeoutSeconds */
  idleTimeout?: number;
  /** Ends the wait for a database that does not answer. */
  signal?: AbortSignal;
  /** Told what time the database has, if it is on another machine. */
  onTime?(time: DatabaseTime): void;
  /** Tests of clients that do not read have less patience. @default readerPatienceMs */
  readerPatienceMs?: number;
  /** Tests have no balancer that would have to notice. @default defaultNoticeMs */
  noticeMs?: number;
  /** How long a rotation of the master key rests before it looks once more. @default settleMs */
  keySettleMs?: number;
  /** For a server that succeeds another one; see `Reception`. */
  reception?: Reception | null;
  /** Its settings, for the operator; tests have none to show. */
  inForce?: readonly SettingInForce[];
  /** Starts a successor; null: this process cannot be succeeded. */
  restart?: Restart | null;
}

/**
 * The composition root: what exists, and what gets what. A unit whose parts nobody else needs, such as the engine,
 * assembles them itself, and is only built here.
 * @throws StartupError with what to do; `shutting_down` when the signal came first
 */
export async function createApp(config: Config, deps: AppDeps): Promise<App> {
  const { clock, secrets, storeFolder, random = Math.random, maxPageCount, idleTimeout } = deps;
  const { wrapStore = (store) => store, senderThread = true, readerPatienceMs, durability = "required" } = deps;
  const { onTime, signal } = deps;
  const home = leftOnce(deps.home);
  const nodeName = config.nodeName ?? hostname();
  const log = createBoundedLog({
    log: deps.log,
    clock,
    // Each of these is an act of the operator, and a record of who did what is never too much.
    always: (event) => event === "operator.acted",
    ...(deps.isLogBehind && { isBehind: deps.isLogBehind }),
    onLeftOut: () => metrics.lineLeftOut(),
  });
  const warn = (message: string) => log.write("warn", "storage.warning", { message });
  const masterKeys = createMasterKeys({ masterKey: secrets.masterKey, home, log });
  // A key that is about to become the store's, or became it just as the last server ended, is already in the files.
  masterKeys.look();
  const machine = createMachineWatch({
    folder: storeFolderOf({ dataDir: storeFolder, url: config.databaseUrl }),
    minFreeBytes: diskFloorOf(config),
    clock,
    log,
    shed: (count) => server.shed(count),
    onLowDisk: (figures) => mail?.notices.operator("disk.low", { at: clock.now(), ...figures }),
    onStorageFailure: (errorClass) => metrics.storageFailed(errorClass),
  });
  const { hasRoom } = machine.disk;
  const pause = createListenerPause();
  const threads = createThreads(pause.reason());
  const { start: startThread } = threads;
  const busyTime = createBusyTime();
  const backups = createBackups({
    url: config.databaseUrl === null ? config.backupUrl : null,
    cron: config.backupCron,
    keep: config.backupKeep,
    isEncrypted: config.backupRecipients.length > 0,
    openPlace: (url) => locate(asFolder(url), { s3: config.s3, staging: storeFolder, leaveFreeBytes: 0 }).place,
    run: deps.runOwn,
    folder: storeFolder,
    notes: { read: home.readBackupNotes, write: home.noteBackups },
    clock,
    log,
    onFailed: (kind, error) => mail?.notices.operator("backup.failed", { at: clock.now(), kind, error }),
  });
  const pauses = createPauses(config.paused, {
    note: home.resumed,
    start(what) {
      if (what === "deliveries") dispatcher.hold(false);
      else billing.work.start();
    },
  });
  const metrics = createMetrics({
    isPaused: pauses.isPaused,
    backups: backups.figures,
    queueDepth: () => store.queueDepth(),
    stored: async () => ({ events: await store.storedEvents(), usedBytes: await store.usedBytes() }),
    clock,
    openStreams: () => hub.openStreams,
    inFlight: () => dispatcher.inFlight,
    disk: () => ({ freeBytes: machine.disk.freeBytes(), floorBytes: diskFloorOf(config) }),
    storage: () => storageSizes(),
    oldestSnapshotSeconds: () => oldestSnapshotSeconds(),
    descriptors: machine.descriptors.count,
    nodeName,
    lease: () => lease,
  });
  const {
    store,
    sandboxBooks,
    limits,
    jobs,
    lease,
    streamLog,
    billingLock,
    sizes: storageSizes,
    oldestSnapshotSeconds,
    keptSecrets,
  } = await openStoreHere();
  const secretFor = (purpose: string) => {
    const kept = keptSecrets[purpose];
    return kept === undefined ? deriveSecret(secrets.masterKey, purpose) : Buffer.from(kept, "hex");
  };
  const vault = sealedWhile(lease.mayStart, masterKeys.vault);
  const { sessionSecret, operatorToken: firstOperatorToken } = ownSecrets();
  const operatorToken = createOperatorToken({ initial: firstOperatorToken, home, log });
  const keyRotation = createKeyRotation({
    ...{ store, keys: masterKeys, contexts: sealedContexts, clock, log },
    outliving: (masterKey) => outlivingSecrets(masterKey, config.databaseUrl !== null),
    announce: () => lease.announce(listenersText(address.ownListeners)),
    mayRun: () => jobs.holds("janitor"),
    ...(deps.keySettleMs !== undefined && { settleMs: deps.keySettleMs }),
  });
  const mostDescriptors = machine.descriptors.count()?.limit ?? Number.POSITIVE_INFINITY;
  const hub = createHub({
    ...{ clock, log, messages: streamLog },
    // The other half is for the database, for deliveries and for everybody's requests.
    mostStreams: Math.min(maxStreamsInAll, Math.floor(mostDescriptors / 2)),
  });
  const answers = createAnswers({
    clock,
    log,
    largestEntryBytes: config.maxBodyBytes,
    ...(readerPatienceMs !== undefined && { patienceMs: readerPatienceMs }),
  });
  const signers = createSigners({ store, vault, clock });
  const headerVault = createHeaderVault(vault);

  const address = createServerAddress(config);
  const { publicUrl } = address;
  const backpressure = createBackpressure(clock, () => dispatcher.waitingForPlace);
  const network = createNetwork({
    settings: config,
    clock,
    log,
    maySendElsewhere: senderThread,
    busyMs: busyTime.totalMs,
    startThread,
    onConnection: metrics.connected,
    onOwnTime: createOwnTimes(clock, (times) => {
      backpressure.heed(times);
      dispatcher.heed(times);
    }),
  });
  const inboxAddresses = createInboxAddresses({ secret: secretFor("inbox"), baseUrl: publicUrl });
  const inbox = createInbox({ store, clock, log, announce: (tenant) => announceChange(hub, tenant, "inbox") });
  const sender = createInboxSender({ addresses: inboxAddresses, inbox, network });
  const mail =
    config.mail &&
    createMail({
      settings: config.mail,
      extraCa: config.extraCa,
      store,
      jobs,
      clock,
      log,
      baseUrl: publicUrl,
      isDiskLow: machine.disk.isLow,
      open: (fact, now) => openResetFact(vault, fact, now),
      onSent: metrics.mailSent,
      onFailure: metrics.mailFailed,
    });
  const engine = createEngine({
    settings: config,
    store,
    limits,
    jobs,
    lease,
    clock,
    log,
    hub,
    metrics,
    signers,
    headerVault,
    sender,
    random,
    ...(mail && { onNews: mail.notices.webhook }),
    isOutbound: ({ tenantId, url }) => !inboxAddresses.isInboxOf(tenantId, url),
  });
  const { dispatcher, deliveries, replayer, pace, failingWebhooks, tell } = engine;
  const testDelivery = createTestDelivery({ signers, headerVault, sender, clock, pace });
  store.onChange(
    createChangeHeeder({
      ...{ deliveries, testDelivery, hub, answers, signers, failingWebhooks },
      masterKey: keyRotation,
    }),
  );
  const avoidNodes = () =>
    network.avoid([...address.ownListeners, ...lease.living().flatMap(({ listener }) => listenersIn(listener))]);
  lease.onChange(createLeaseHeeder({ deliveries, hub, answers, signers, failingWebhooks, avoidNodes, log }));

  const codec = jwt({ name: "jwt", secret: sessionSecret, alg: "HS256", schema: sessionClaims }).decorator.jwt;
  const sessions = createSessions({ codec, store, clock });
  const keyUse = createKeyUse({ store, clock });
  const passwords = createPasswords(deps.passwordCost && { cost: deps.passwordCost });
  const strangers = createStrangers({ store, clock });
  const noteAct = createNoteAct({ store, log });
  const onFailure = () => metrics.loginFailed("account");
  const login = createLogin({
    store,
    limits,
    clock,
    passwords,
    log,
    localMode: config.localMode,
    noteStranger: strangers.note,
    onFailure,
  });
  const resets = createPasswordResets({
    ...{ store, limits, clock, passwords, vault, log },
    onQueued: mail?.outbox.wake ?? null,
  });
  const billing = createBilling({
    settings: config,
    store,
    sandboxBooks,
    jobs,
    lock: billingLock,
    clock,
    log,
    vault,
    secretFor,
    publicUrl,
    ownUrl: address.localUrl,
    isPaused: () => pauses.isPaused("charges"),
    announce: (tenant, changed) => announceChange(hub, tenant, changed ?? "billing"),
    ...(mail && { onFailed: mail.notices.chargeFailed }),
    removeTenant: (tenant) => accounts.remove(tenant, null),
    checkEmail: (tenant, email) => accounts.checkEmail(tenant, email),
    changeEmail: (tenant, email, origin) => accounts.changeEmail(tenant, email, origin),
    onUnknownLookUp: metrics.lookUpUnknown,
  });
  const { prices, payments, sandbox } = billing;
  const accounts = createAccounts({
    store,
    limits,
    clock,
    vault,
    policy: network.policy,
    hub,
    passwords,
    payments,
    onDeleted: billing.work.wake,
    settings: config,
    log,
  });
  const apiKeys = createApiKeys({ store, clock, vault, keyUse });
  const signingKeys = createSigningKeys({ store, clock, vault });
  const browserSessions = createBrowserSessions({
    secret: secretFor("operator session"),
    operatorToken: operatorToken.current,
    publicUrl,
    clock,
  });
  const onWrongToken = (access: Access, address: string) => {
    metrics.loginFailed("operator");
    log.write("warn", "operator.refused", { address, access });
    strangers.note("operator.refused", null, address);
  };
  const ingest = createIngest({
    store,
    dispatcher,
    announce: engine.announceAccepted,
    backpressure,
  });

  const readiness = createReadiness({ store, lease, hasRoom, clock });
  const isSuccessor = (deps.reception ?? null) !== null;
  const { host, healthPort } = config;
  const beacon =
    healthPort === null
      ? null
      : createHealthBeacon({ host, port: healthPort, isSuccessor, readiness, clock, startThread });

  const storageBytes = createStorageBytes({ store, clock });
  const dashboard = findDashboard();
  const endpoints = [
    ...aboutRoutes({ config, prices, pauses, baseUrl: publicUrl }),
    ...accountRoutes({
      ...{ store, storageBytes, clock, accounts, usualAges: config, localMode: config.localMode },
      onPoll: (tenant) => payments?.poll(tenant),
    }),
    ...billingRoutes({ store, clock, log, prices, payments }),
    ...(sandbox ? sandboxRoutes({ sandbox }) : []),
    ...sessionRoutes({ store, sessions, login }),
    ...passwordResetRoutes({ resets }),
    ...mailRoutes({ post: mail?.post ?? null, baseUrl: publicUrl, noteAct }),
    ...credentialRoutes({ accounts, apiKeys, signingKeys, hub, noteAct }),
    ...webhookRoutes({
      store,
      limits,
      clock,
      webhookConcurrency: config.webhookConcurrency,
      log,
      headerVault,
      policyOf: (tenant) => allowInbox(network.policy, inboxAddresses.urlOf(tenant.id)),
      hub,
      tell,
      maxBodyBytes: config.maxBodyBytes,
      sendTest: testDelivery.send,
      isPaused: () => pauses.isPaused("deliveries"),
    }),
    ...inboxRoutes({ store, addresses: inboxAddresses, hub }),
    ...ingestRoutes({ ingest, announceRefused: engine.announceRefused, maxBodyBytes: config.maxBodyBytes }),
    ...replayRoutes({ store, limits, clock, hub, deliveries, replayer, bulkReplaysPerDay: config.bulkReplaysPerDay }),
    ...failureRoutes({ store, clock }),
    ...eventReadRoutes({ store, clock, preview: createPreview({ signers, clock }) }),
    ...streamRoutes({ hub, sessions }),
    ...auditRoutes({ store }),
    ...operatorRoutes({
      accounts,
      apiKeys,
      signingKeys,
      sessions,
      store,
      storageBytes,
      clock,
      log,
      noteAct,
      rotateToken: operatorToken.rotate,
    }),
    ...statusRoutes({ metrics, store, clock, startedAt: clock.now(), paused: pauses.paused }),
    ...operatorSessionRoutes({
      sessions: browserSessions,
      operatorToken: operatorToken.current,
      limits,
      log,
      noteAct,
      onWrongToken: (address) => onWrongToken("operator", address),
    }),
    ...nodeRoutes({
      lease,
      isShared: config.databaseUrl !== null,
      self: { name: nodeName, since: clock.now(), listener: () => listenersText(address.ownListeners) },
    }),
    ...healthRoutes({ readiness, isStopping: () => stopping }),
    ...backupRoutes({ backups, noteAct }),
    ...pauseRoutes({ pauses, log, noteAct }),
    ...keyRoutes({ rotation: keyRotation, noteAct }),
    ...(payments ? chargeRoutes(store) : []),
    ...(deps.inForce ? configRoutes(deps.inForce) : []),
    ...(deps.restart ? restartRoutes({ restart: deps.restart, noteAct }) : []),
    ...metricsRoutes({ metrics, isPublic: !config.localMode }),
    ...docsRoutes(),
    ...dashboardRoutes(dashboard),
  ];

  const server = createServer({
    endpoints,
    authenticate: createAuthenticate({
      sessions,
      authenticateApiKey: createApiKeyAuthentication({ store, clock, keyUse }),
      operatorToken: operatorToken.current,
      isOperatorsBrowser: browserSessions.isOpen,
      metricsToken: config.metricsToken,
      onWrongToken,
    }),
    answers,
    config,
    publicUrl,
    assetsFolder: dashboard?.assetsFolder ?? null,
    unknownPage: unknownPage(dashboard),
    clock,
    log,
    metrics,
    pause,
    onRequest: machine.descriptors.noteRequest,
    reception: deps.reception ?? null,
    idleTimeout,
  });
  /** Nothing new is started; requests are served until what is in flight has ended. */
  let stopping = false;

  return {
    endpoints,
    store,
    sandboxBooks,
    keepPort: server.keepPort,
    reloadCertificate: server.reloadCertificate,
    whenIdle: () => dispatcher.whenIdle(),
    ...createLifecycle({
      ...{ config, clock, log, home, store, lease, server, address, beacon, engine, sender, billing, backups },
      ...{ nodeName, keyRotation, mail, pauses, hub, answers, avoidNodes, warn },
      isSuccessor,
      threads,
      descriptors: machine.descriptors,
      disk: machine.disk,
      unwritten: [engine, keyUse, strangers, resets],
      onStopping() {
        stopping = true;
      },
      noticeMs: deps.noticeMs,
    }),
  };

  /** The secrets that all servers of the database have. */
  function ownSecrets(): Pick<Secrets, "sessionSecret" | "operatorToken"> {
    if (config.databaseUrl === null) return secrets;
    const shared = asOthersHave(secrets, secretFor);
    const isAsMade = shared.sessionSecret === secrets.sessionSecret && shared.operatorToken === secrets.operatorToken;
    if (!isAsMade) home.shareSecrets(shared);
    // An operator token of its own is what a server has after a rotation, and the command has said so.
    if (shared.sessionSecret !== sharedSecretsOf(secretFor).sessionSecret) {
      warn(
        "The session-secret in the data directory is not the one that servers without such a file use, so a session on one may " +
          "not be valid on the others. Try: give all servers the same file, or remove it from each that has one and restart it; " +
          "the sessions that it signed end.",
      );
    }
    return shared;
  }

  async function openStoreHere(): Promise<OpenedStore> {
    try {
      const { databaseUrl } = config;
      const place =
        databaseUrl === null
          ? {
              dataDir: storeFolder,
              checkpoints: config.checkpoints,
              startThread,
              onStandstill: busyTime.stoodStill,
              ...(maxPageCount !== undefined && { maxPageCount }),
            }
          : {
              url: databaseUrl,
              nodeName,
              durability,
              keys: masterKeys.announced,
              movedTo: home.movedTo(),
              lastNode: home.lastNode(),
              noteNode: home.noteNode,
              onBeat: machine.storage.committed,
              ...(onTime && { onTime }),
              ...(signal && { signal }),
            };
      const opened = await openStore({
        ...place,
        clock,
        vault: masterKeys.vault,
        mayGrow: hasRoom,
        onCommit(commit) {
          metrics.committed(commit);
          machine.storage.committed();
        },
        onFailure: machine.storage.failed,
        onAhead: machine.idClock,
        warn,
        onDefect: (error) =>
          log.write("error", "change.unheeded", {
            error: stackOf(error),
          }),
      });
      return { ...opened, store: wrapStore(opened.store) };
    } catch (error) {
      home.release();
      throw error;
    }
  }
}
