import { createAccounts } from "../../../../src/accounts/accounts.ts";
import { createSigningKeys } from "../../../../src/accounts/signing-keys.ts";
import { createHeaderVault } from "../../../../src/delivery/own-headers.ts";
import type { DeliveryRates } from "../../../../src/delivery/queue/account-pace.ts";
import { buildRequest } from "../../../../src/delivery/request.ts";
import type { Sender } from "../../../../src/delivery/sender.ts";
import { createSigners, type Signers } from "../../../../src/delivery/signers.ts";
import type { Tenant } from "../../../../src/domain/tenant.ts";
import { createEngine } from "../../../../src/engine.ts";
import { createBackpressure } from "../../../../src/events/backpressure.ts";
import { createIngest } from "../../../../src/events/ingest.ts";
import { createChangeHeeder } from "../../../../src/heed-changes.ts";
import type { ErasedEndpoint } from "../../../../src/http/endpoint.ts";
import { createMetrics } from "../../../../src/http/metrics.ts";
import type { Clock } from "../../../../src/lib/clock.ts";
import type { Log } from "../../../../src/lib/log.ts";
import type { Vault } from "../../../../src/lib/vault.ts";
import { createReplays } from "../../../../src/replays/replay.ts";
import type { Settled, Settlement } from "../../../../src/store/deliveries.ts";
import { createMemoryLog } from "../../../../src/store/memory-log.ts";
import { alone } from "../../../../src/store/node-lease.ts";
import { openStore } from "../../../../src/store/open.ts";
import type { Store } from "../../../../src/store/store.ts";
import { createHub, type Hub } from "../../../../src/stream/hub.ts";
import { webhookRoutes } from "../../../../src/webhooks/routes.ts";
import type { FakeClock } from "../../../support/fake-clock.ts";
import { metricSources } from "../../../support/metric-sources.ts";
import { createLife, type LifeDeps, never } from "../../../support/mortal.ts";
import type { Disk } from "./disk.ts";
import type { Network } from "./network.ts";
import type { Entry } from "./throttle.ts";

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
  /** An attempt begins: its keys are asked for. */
  beginning(tenantKey: number): void;
  /** The outcome of an attempt is on disk. */
  settled(settlement: Settlement, settled: Settled): void;
  publishing(tenantId: string, kind: string, data: Record<string, unknown>): void;
  pruned(): void;
  /** The program wrote an error into its log. */
  failed(event: string, error: string): void;
}

/** Nobody reads the metrics of a history, so all share one set. */
const metrics = createMetrics(metricSources());

const anyUrl = {
  checkUrl: (input: string) => ({ ok: true, url: new URL(input) }) as const,
  learn: () => undefined,
};

/** Starts the program over what the disk holds: its engine, and of the rest what the histories use. */
export async function createIncarnation(deps: IncarnationDeps) {
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

  /** The writer pauses only when a commit is in doubt; after a crash it has to come to its end, to be closed. */
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

  const {
    store: stored,
    limits,
    jobs,
  } = await openStore({
    dataDir: deps.dataDir,
    clock: laneClock,
    mayGrow: disk.hasRoom,
    commit: (commit) => (life.isDead ? disk.commitAfterCrash(commit) : disk.commit(commit)),
    pauses: false,
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
  const ownHub = createHub({ clock, log, messages: createMemoryLog(clock) });
  const hub: Hub = {
    ...ownHub,
    publish(tenantId, kind, data) {
      if (life.isDead) return;
      watch.publishing(tenantId, kind, data());
      ownHub.publish(tenantId, kind, data);
    },
  };

  const sender: Sender = {
    send: ({ delivery, material, headers, now }, signal) =>
      life.isDead ? never() : network.send(buildRequest(delivery, material, now, headers), signal),
    close: network.close,
  };

  const signers = createSigners({ store, vault, clock });
  const headerVault = createHeaderVault(vault);
  /** Attempts that have begun and are not on their way yet: their keys are being read. */
  let preparing = 0;
  const watchedSigners: Signers = {
    ...signers,
    materialFor(tenantKey, tenantId) {
      if (!life.isDead) watch.beginning(tenantKey);
      const material = signers.materialFor(tenantKey, tenantId);
      if (!(material instanceof Promise)) return material;
      preparing += 1;
      return material.finally(() => {
        preparing -= 1;
      });
    },
  };
  // As soon as may be: few histories take days.
  const disableAfterMs = 1;
  const { scheduleMs: retryScheduleMs, webhookConcurrency, deliveryRates } = deps;
  const keptForEver = { retentionMs: null, retentionPayloadsMs: null, retentionMaxBytes: null };
  const engine = createEngine({
    settings: { retryScheduleMs, webhookConcurrency, deliveryRates, disableAfterMs, ...keptForEver },
    store,
    limits,
    jobs,
    lease: alone,
    clock,
    log,
    hub,
    metrics,
    signers: watchedSigners,
    headerVault,
    sender,
    random: deps.random,
    replayChunk: 10,
    isOutbound: () => true,
  });
  const { dispatcher, deliveries, replayer, failingWebhooks } = engine;
  const heed = createChangeHeeder({
    ...{ deliveries, hub, signers, failingWebhooks },
    ...{ answers: { closeTenant: () => {} }, masterKey: { adopt() {} }, testDelivery: { stopTenant() {} } },
  });
  stored.onChange((change) => {
    if (!life.isDead) heed(change);
  });
  const accounts = createAccounts({
    store,
    limits,
    clock,
    vault,
    policy: anyUrl,
    hub,
    passwords: { hash: async () => "hash", verify: async () => false },
    payments: null,
    onDeleted() {},
    settings: { signup: "open", localMode: true, webhookConcurrency },
    log,
  });
  const routes = webhookRoutes({
    store,
    limits,
    clock,
    webhookConcurrency,
    log,
    headerVault,
    policyOf: () => anyUrl,
    hub,
    isPaused: () => false,
    tell: engine.tell,
    maxBodyBytes: 0,
    sendTest: () => never(),
  });

  engine.start().catch((error: unknown) => watch.failed("start", String(error)));

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
    signingKeys: createSigningKeys({ store, clock, vault }),
    replays: createReplays({ store, deliveries, hub, replayer, clock, bulkReplaysPerDay: null }),
    ingest: createIngest({
      store,
      dispatcher,
      announce: engine.announceAccepted,
      backpressure: createBackpressure(clock, () => dispatcher.waitingForPlace),
    }),

    /** `PUT /v1/tenants/webhooks`, as its route does it. */
    putWebhooks: (tenant: Tenant, entries: readonly Entry[]) =>
      call(routes, "PUT", "/v1/tenants/webhooks", tenant, entries),

    get isDead() {
      return life.isDead;
    },
    /** Attempts are being made ready. */
    get isPreparing() {
      return preparing > 0;
    },
    /** What the writer has not committed is lost, nobody hears of what was under way, and no timer goes off. */
    crash: life.crash,
    /** Lets go of the files; from its resolution on the database can be opened again. */
    async bury() {
      end();
      await stored.close();
    },
    /** Ends the program in order, as `app.ts` does it. */
    async stop(graceMs: number) {
      await engine.stop(graceMs);
      sender.close();
      ownHub.closeAll();
      await engine.flush().catch(() => {});
    },
  };
}

export type Incarnation = Awaited<ReturnType<typeof createIncarnation>>;

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
