import { createAccounts } from "../../../src/accounts/accounts.ts";
import { createSigningKeys } from "../../../src/accounts/signing-keys.ts";
import { createAccountPace, type DeliveryRates } from "../../../src/delivery/account-pace.ts";
import { createAnnouncer } from "../../../src/delivery/announce.ts";
import { createDeliver } from "../../../src/delivery/deliver.ts";
import type { DeliveryControl } from "../../../src/delivery/deliveries.ts";
import { createDispatcher } from "../../../src/delivery/dispatcher.ts";
import { buildRequest } from "../../../src/delivery/request.ts";
import { createRetryPolicy } from "../../../src/delivery/retry.ts";
import type { Sender } from "../../../src/delivery/sender.ts";
import { createSigners } from "../../../src/delivery/signers.ts";
import type { DueDelivery, Tenant } from "../../../src/domain.ts";
import { createIngest } from "../../../src/events/ingest.ts";
import type { ErasedEndpoint } from "../../../src/http/endpoint.ts";
import { createMetrics } from "../../../src/http/metrics.ts";
import type { Clock } from "../../../src/lib/clock.ts";
import type { Log } from "../../../src/lib/log.ts";
import type { Vault } from "../../../src/lib/vault.ts";
import { createJanitor } from "../../../src/maintenance/janitor.ts";
import { createStatRecorder } from "../../../src/maintenance/stat-recorder.ts";
import { createReplayProgress } from "../../../src/replays/progress.ts";
import { createReplays } from "../../../src/replays/replay.ts";
import { createReplayer } from "../../../src/replays/replayer.ts";
import { openStore } from "../../../src/store/open.ts";
import type { Settled, Settlement, Store } from "../../../src/store/store.ts";
import { createHub, type Hub } from "../../../src/stream/hub.ts";
import { webhookRoutes } from "../../../src/webhooks/routes.ts";
import type { FakeClock } from "../../support/fake-clock.ts";
import { createLife, type LifeDeps, never } from "../mortal.ts";
import type { Disk } from "./disk.ts";
import type { Network } from "./network.ts";

export interface IncarnationDeps extends LifeDeps {
  dataDir: string;
  clock: FakeClock;
  /** 0 to 1; for the jitter of retries. */
  random(): number;
  vault: Vault;
  disk: Disk;
  network: Network;
  scheduleMs: readonly number[];
  webhookConcurrency: number;
  deliveryRates: DeliveryRates;
  /** Told what the program does, at the moment in which it does it. */
  watch: Watch;
}

export interface Watch {
  /** The outcome of an attempt is on disk. */
  settled(settlement: Settlement, settled: Settled): void;
  publishing(tenantId: string, kind: string, data: Record<string, unknown>): void;
  pruned(): void;
  /** The program wrote an error into its log. */
  failed(event: string, error: string): void;
}

/** Nobody reads the metrics of a history, so all share one set. */
const metrics = createMetrics({
  queueDepth: async () => ({ pending: 0, oldestDueAt: null }),
  now: () => 0,
  openStreams: () => 0,
  isPaused: () => false,
  inFlight: () => 0,
  disk: () => ({ freeBytes: 0, floorBytes: 0 }),
  storage: () => ({ databaseBytes: 0, logBytes: 0 }),
  descriptors: () => null,
});

const anyUrl = {
  checkUrl: (input: string) => ({ ok: true, url: new URL(input) }) as const,
  learn: () => undefined,
};

/** Starts the program over what the disk holds, put together as `app.ts` does it, without its listener. */
export function createIncarnation(deps: IncarnationDeps) {
  const { disk, network, vault, watch } = deps;
  const life = createLife(deps);
  const timers = new Set<() => void>();

  /** The program's timers die with it. */
  const clock: Clock = {
    now: () => deps.clock.now(),
    monotonicMs: () => deps.clock.monotonicMs(),
    after(delayMs, callback) {
      if (life.isDead) return () => {};
      const cancel = deps.clock.after(delayMs, () => {
        timers.delete(cancel);
        callback();
      });
      timers.add(cancel);
      return () => {
        timers.delete(cancel);
        cancel();
      };
    },
  };

  /** The lane pauses only when a commit is in doubt; after a crash it has to come to its end, to be closed. */
  const lanePauses = new Set<() => void>();
  const laneClock: Clock = {
    ...clock,
    after(delayMs, callback) {
      const end = () => {
        cancel();
        if (lanePauses.delete(end)) callback();
      };
      const cancel = deps.clock.after(life.isDead ? 0 : delayMs, end);
      lanePauses.add(end);
      return cancel;
    },
  };

  const stored = openStore({
    dataDir: deps.dataDir,
    clock: laneClock,
    hasRoom: disk.hasRoom,
    commit: (commit) => (life.isDead ? disk.commitAfterCrash(commit) : disk.commit(commit)),
    rests: false,
    secondThread: false,
  });
  const store = life.mortal<Store>({
    ...stored,
    async settle(settlement) {
      const settled = await stored.settle(settlement);
      watch.settled(settlement, settled);
      return settled;
    },
    async prune(now, limit) {
      const isMore = await stored.prune(now, limit);
      watch.pruned();
      return isMore;
    },
  });

  const log: Log = {
    enabled: (level) => level === "error",
    write(level, event, fields) {
      if (level === "error" && !life.isDead) watch.failed(event, String(fields?.error));
    },
  };
  const ownHub = createHub({ clock, log });
  const hub: Hub = {
    ...ownHub,
    publish(tenantId, kind, data) {
      if (life.isDead) return;
      watch.publishing(tenantId, kind, data());
      ownHub.publish(tenantId, kind, data);
    },
  };

  const sender: Sender = {
    send({ delivery, material, now }, signal) {
      preparing.delete(delivery);
      return life.isDead ? never() : network.send(buildRequest(delivery, material, now), signal);
    },
    close: network.close,
  };

  const signers = createSigners({ store, vault, clock });
  const stats = createStatRecorder({ store, clock });
  const replayProgress = createReplayProgress({ store, hub, clock, onCompleted: () => replayer.wake() });
  const announcer = createAnnouncer({ hub, stats, metrics, log, failureLog: { attempted() {} }, replayProgress });
  const deliver = createDeliver({
    clock,
    signers,
    sender,
    store,
    retry: createRetryPolicy(deps.scheduleMs, deps.random),
    announce: announcer.attempted,
    onStorageStalled: (stalled) => dispatcher.stall(stalled),
  });
  /** Attempts that have begun and are not on their way yet: signing may take a thread of its own. */
  const preparing = new Set<DueDelivery>();
  const dispatcher = createDispatcher({
    store,
    clock,
    log,
    deliver(delivery, route) {
      preparing.add(delivery);
      return deliver(delivery, route).finally(() => preparing.delete(delivery));
    },
    webhookConcurrency: deps.webhookConcurrency,
    pace: createAccountPace(clock, deps.deliveryRates),
  });
  const replayer = createReplayer({ store, deliveries: dispatcher, hub, clock, log, chunk: 10 });
  const janitor = createJanitor({ store, clock, log, onFailed: () => replayer.wake() });
  const deliveries: DeliveryControl = {
    ...dispatcher,
    removeWebhooks(keys) {
      dispatcher.removeWebhooks(keys);
      if (keys.length > 0) janitor.wake();
    },
    stopTenant(tenantKey) {
      dispatcher.stopTenant(tenantKey);
      janitor.wake();
    },
    resumeTenant(tenantKey) {
      dispatcher.resumeTenant(tenantKey);
      replayer.wake();
    },
  };
  const accounts = createAccounts({
    store,
    clock,
    vault,
    policy: anyUrl,
    deliveries,
    hub,
    answers: { closeTenant: () => {} },
    signers,
    passwords: { hash: async () => "hash", verify: async () => false },
    payments: null,
    settings: { signup: "open", localMode: true },
    log,
  });
  const routes = webhookRoutes({
    store,
    clock,
    policyOf: () => anyUrl,
    deliveries,
    hub,
    isPaused: () => false,
    sendTest: () => never(),
  });

  const dispatching = dispatcher.start();
  dispatching.catch((error: unknown) => watch.failed("start", String(error)));
  replayer.start();
  janitor.start();

  function end(): void {
    life.crash();
    for (const cancel of timers) cancel();
    for (const endPause of [...lanePauses]) endPause();
  }

  return {
    store,
    accounts,
    hub,
    dispatcher,
    signingKeys: createSigningKeys({ store, clock, vault, signers }),
    replays: createReplays({ store, deliveries, hub, replayer, clock, bulkReplaysPerDay: null }),
    ingest: createIngest({ store, dispatcher, announce: announcer.accepted }),

    /** `PUT /v1/tenants/webhooks`, as its route does it. */
    putWebhooks: (tenant: Tenant, urls: readonly string[]) =>
      call(
        routes,
        "PUT",
        "/v1/tenants/webhooks",
        tenant,
        urls.map((webhook_url) => ({ webhook_url, name: "" })),
      ),

    get isDead() {
      return life.isDead;
    },
    /** Attempts are being made ready. */
    get isPreparing() {
      return preparing.size > 0;
    },
    /** What the lane has not committed is lost, nobody hears of what was under way, and no timer goes off. */
    crash: life.crash,
    /** Lets go of the files; from its resolution on the database can be opened again. */
    async bury() {
      end();
      await stored.close();
    },
    /** Ends the program in order, as `app.ts` does it. */
    async stop(graceMs: number) {
      await replayer.stop();
      await janitor.stop();
      await dispatcher.stop(graceMs);
      sender.close();
      ownHub.closeAll();
      await stats.flush().catch(() => {});
    },
  };
}

export type Incarnation = ReturnType<typeof createIncarnation>;

/** Calls an endpoint as if the request had been checked. */
async function call(
  endpoints: readonly ErasedEndpoint[],
  method: string,
  path: string,
  tenant: Tenant,
  body: unknown,
): Promise<void> {
  const found = endpoints.find((endpoint) => endpoint.method === method && endpoint.path === path);
  if (!found) throw new Error(`There is no ${method} ${path}`);
  const request = {
    address: "",
    tenant,
    session: undefined,
    params: undefined,
    query: undefined,
    body,
    headers: new Headers(),
    raw: new Request("https://relay.example"),
  };
  await found.handle(request as Parameters<typeof found.handle>[0]);
}
