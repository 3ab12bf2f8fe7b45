import { createAnnouncer } from "./delivery/announce.ts";
import { createDeliver } from "./delivery/deliver.ts";
import { createExhaustedDeliveries } from "./delivery/exhausted-deliveries.ts";
import { createFailingWebhooks, type FailingWebhooks } from "./delivery/failing-webhooks.ts";
import { createFailureLog } from "./delivery/failure-log.ts";
import { createOwnEvents, type OwnNews, type TellAccount } from "./delivery/own-events.ts";
import type { HeaderVault } from "./delivery/own-headers.ts";
import { type AccountPace, createAccountPace, type DeliveryRates } from "./delivery/queue/account-pace.ts";
import type { DeliveryControl } from "./delivery/queue/control.ts";
import { createDispatcher, type Dispatcher } from "./delivery/queue/dispatcher.ts";
import { createRetryPolicy } from "./delivery/retry.ts";
import type { Sender } from "./delivery/sender.ts";
import type { Signers } from "./delivery/signers.ts";
import type { DueDelivery } from "./domain/delivery.ts";
import type { AnnounceAccepted, AnnounceRefused } from "./events/ingest.ts";
import type { Metrics } from "./http/metrics.ts";
import type { Clock } from "./lib/clock.ts";
import type { Log } from "./lib/log.ts";
import type { Loop } from "./lib/loop.ts";
import { createJanitor } from "./maintenance/janitor.ts";
import { createRetention, type RetentionSettings } from "./maintenance/retention.ts";
import { createStatRecorder } from "./maintenance/stat-recorder.ts";
import { createReplayProgress } from "./replays/progress.ts";
import { createReplayer } from "./replays/replayer.ts";
import type { Jobs } from "./store/jobs.ts";
import type { Limits } from "./store/limits.ts";
import type { NodeLease } from "./store/node-lease.ts";
import type { Store } from "./store/store.ts";
import type { Hub } from "./stream/hub.ts";

export interface Engine {
  readonly dispatcher: Pick<
    Dispatcher,
    "roomFor" | "offer" | "heed" | "wake" | "hold" | "whenIdle" | "inFlight" | "held" | "waitingForPlace"
  >;
  /** The dispatcher as the rest of the program sees it. */
  readonly deliveries: DeliveryControl;
  readonly replayer: Pick<Loop, "wake">;
  /** Test deliveries count against this too. */
  readonly pace: AccountPace;
  /** Tells an account something about a webhook through an event. */
  readonly tell: TellAccount;
  /** Must be told what changes in the store. */
  readonly failingWebhooks: Pick<FailingWebhooks, "stands" | "forget" | "forgetTenant" | "forgetAll">;
  announceAccepted: AnnounceAccepted;
  announceRefused: AnnounceRefused;
  /** Starts delivering what is pending, then the background work. */
  start(): Promise<void>;
  /**
   * Starts nothing new and lets attempts in flight end. Background work stops first: until it is idle, what it wakes is
   * still delivered.
   * @param beside other background work that has been told to end
   * @returns the number of attempts left after `graceMs`
   */
  stop(graceMs: number, beside?: Promise<void>): Promise<number>;
  /** Writes what is still in memory: statistics, and which webhooks are failing. */
  flush(): Promise<void>;
}

export interface EngineSettings extends RetentionSettings {
  readonly retryScheduleMs: readonly number[];
  /** Maximum concurrent attempts to one webhook, over all nodes: each has its share. */
  readonly webhookConcurrency: number;
  readonly deliveryRates: DeliveryRates;
  /** Null: no webhook is ever disabled. */
  readonly disableAfterMs: number | null;
}

export interface EngineDeps {
  settings: EngineSettings;
  store: Store;
  limits: Pick<Limits, "take">;
  jobs: Jobs;
  lease: NodeLease;
  clock: Clock;
  log: Log;
  hub: Hub;
  metrics: Metrics;
  signers: Signers;
  headerVault: Pick<HeaderVault, "open">;
  sender: Sender;
  /** Told everything that accounts are told, whether or not any webhook asks for it. */
  onNews?(news: OwnNews): void;
  /** 0 to 1; for the jitter of retries. */
  random(): number;
  /** Events that a bulk replay queues in one transaction. @default see `createReplayer` */
  replayChunk?: number;
  /** Whether a delivery goes out over the network. */
  isOutbound(delivery: DueDelivery): boolean;
}

/**
 * Everything that delivers, wired up once: the program runs it, and so does the simulation (`bun run sim`), which tests
 * exactly this wiring in a world that fails.
 *
 *   ingest ──offer──▶ dispatcher ──▶ deliver ──▶ settle ──▶ announce ──▶ streams, statistics, metrics, log, failing webhooks
 *                      ▲      ▲                                │
 *   changes, replays ──┘      └──wake── replayer ◀──wake───────┴── the replay of this record has ended
 *      └── what was removed ──wake──▶ janitor ──wake──▲
 */
export function createEngine(deps: EngineDeps): Engine {
  const {
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
    replayChunk,
    isOutbound,
  } = deps;
  const { retryScheduleMs, webhookConcurrency, deliveryRates, disableAfterMs } = deps.settings;
  const stats = createStatRecorder({ store, clock });
  const announcer = createAnnouncer({
    hub,
    stats,
    metrics,
    log,
    failureLog: createFailureLog({ clock, log, store }),
    onReplayedRunEnded: createReplayProgress({ store, hub, clock, onCompleted: () => replayer.wake() }).runEnded,
  });
  const tellByEvent = createOwnEvents({
    store,
    limits,
    wake: (webhooks) => dispatcher.wake(webhooks),
    announce: announcer.accepted,
    log,
  });
  const tell: TellAccount = (news) => {
    deps.onNews?.(news);
    return tellByEvent(news);
  };
  const exhausted = createExhaustedDeliveries({ clock, tell });
  const failingWebhooks = createFailingWebhooks({
    store,
    clock,
    log,
    hub,
    tell,
    isOutbound,
    policy: { disableAfterMs },
  });
  const deliver = createDeliver({
    clock,
    signers,
    headerVault,
    sender,
    store,
    retry: createRetryPolicy(retryScheduleMs, random),
    announce(settlement, kind) {
      announcer.attempted(settlement, kind);
      failingWebhooks.attempted(settlement);
      // A run that has been overtaken ends nothing: the newer one will say what becomes of the delivery.
      if (kind === "settled") exhausted.attempted(settlement);
    },
    onStorageStalled: (stalled) => dispatcher.stall(stalled),
  });
  const servers = () => Math.max(1, lease.living().length);
  const pace = createAccountPace(clock, deliveryRates);
  const dispatcher = createDispatcher({
    store,
    clock,
    log,
    deliver,
    webhookConcurrency: () => Math.ceil(webhookConcurrency / servers()),
    servers,
    mayStart: lease.mayStart,
    pace,
  });
  const replayer = createReplayer({
    store,
    deliveries: dispatcher,
    hub,
    clock,
    log,
    mayRun: () => jobs.holds("replayer"),
    passOn: () => jobs.wake("replayer"),
    ...(replayChunk !== undefined && { chunk: replayChunk }),
  });
  const janitor = createJanitor({
    store,
    deliveries: dispatcher,
    clock,
    log,
    mayRun: () => jobs.holds("janitor"),
    passOn: () => jobs.wake("janitor"),
    onFailed: () => replayer.wake(),
  });
  const retention = createRetention({
    store,
    settings: deps.settings,
    clock,
    log,
    mayRun: () => jobs.holds("janitor"),
    passOn: () => jobs.wake("janitor"),
    onFreed: janitor.giveBack,
  });
  jobs.onWake("replayer", replayer.wake);
  jobs.onWake("janitor", janitor.wake);

  return {
    dispatcher,
    replayer,
    pace,
    failingWebhooks,
    tell,
    announceAccepted: announcer.accepted,
    announceRefused: announcer.refused,

    deliveries: {
      ...dispatcher,
      endOrder: janitor.wake,
      removeWebhooks(keys) {
        dispatcher.removeWebhooks(keys);
        exhausted.forget(keys);
        janitor.wake();
      },
      disableWebhook(key) {
        dispatcher.disableWebhook(key);
        janitor.wake();
      },
      stopTenant(tenantKey) {
        dispatcher.stopTenant(tenantKey);
        exhausted.forgetTenant(tenantKey);
        janitor.wake();
      },
      resumeTenant(tenantKey) {
        dispatcher.resumeTenant(tenantKey);
        replayer.wake();
      },
    },

    async start() {
      await failingWebhooks.start();
      await dispatcher.start();
      replayer.start();
      janitor.start();
      retention.start();
    },
    async stop(graceMs, beside) {
      exhausted.stop();
      await Promise.all([beside, replayer.stop(), janitor.stop(), retention.stop()]);
      return dispatcher.stop(graceMs);
    },
    async flush() {
      await Promise.all([stats.flush(), failingWebhooks.flush()]);
    },
  };
}
