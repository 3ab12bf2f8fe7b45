import { expect, test } from "bun:test";
import { createEngine } from "../src/engine.ts";
import { createMetrics } from "../src/http/metrics.ts";
import type { Settled } from "../src/store/deliveries.ts";
import { everyJob, type Job, type Jobs } from "../src/store/jobs.ts";
import { createMemoryLimits } from "../src/store/memory-limits.ts";
import { createMemoryLog } from "../src/store/memory-log.ts";
import { alone } from "../src/store/node-lease.ts";
import type { StatDelta } from "../src/store/stats.ts";
import type { Store } from "../src/store/store.ts";
import { createHub } from "../src/stream/hub.ts";
import { dueDelivery, signerMaterial } from "./support/due-delivery.ts";
import { createFakeClock } from "./support/fake-clock.ts";
import { metricSources } from "./support/metric-sources.ts";

const log = { enabled: () => false, write() {} };
const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

/** An engine over a store with nothing in it; every webhook answers with `status`. */
function setUp(changes: Partial<Store> = {}, jobs: Jobs = everyJob, status = 200) {
  const clock = createFakeClock();
  const sent: number[] = [];
  const news: string[] = [];
  const none = {
    failingWebhooks: async () => [],
    discover: async () => [],
    claim: async () => ({ due: [], nextDueAt: null }),
    release: async () => {},
    queueReplayBatch: async () => null,
    returnCancelled: async () => null,
    failUndeliverable: async () => false,
    eraseDeleted: async () => false,
    prune: async () => false,
    forgetWebhooks: async () => false,
    reclaim: async () => false,
    accountsKeptOtherwise: async () => [],
    keptAnswers: async () => ({ attempts: [], lookedTo: null, isMore: false }),
    settle: async () => ({ kind: "settled", attempt: { tenantKey: 1, eventSeq: 1, key: 1 } }),
    addStats: async () => {},
    ...changes,
  };
  const material = signerMaterial();
  const engine = createEngine({
    settings: {
      retryScheduleMs: [],
      webhookConcurrency: 1,
      disableAfterMs: null,
      retentionMs: null,
      retentionPayloadsMs: null,
      retentionMaxBytes: null,
      deliveryRates: { free: null, pro: null, business: null, enterprise: null },
    },
    store: none as unknown as Store,
    limits: createMemoryLimits(clock),
    jobs,
    lease: alone,
    clock,
    log,
    hub: createHub({ clock, log, messages: createMemoryLog(clock) }),
    metrics: createMetrics(metricSources()),
    signers: { materialFor: () => material, forget() {}, forgetAll() {} },
    headerVault: { open: () => [] },
    sender: {
      async send({ delivery }) {
        sent.push(delivery.deliveryKey);
        const body = { ended: true, received: () => Buffer.from("ok"), done: Promise.resolve() };
        return { kind: "responded", status, retryAfter: undefined, head: null, durationMs: 1, body };
      },
      close() {},
    },
    onNews: ({ type }) => void news.push(type),
    random: () => 0.5,
    isOutbound: () => true,
  });
  return { engine, sent, news, clock };
}

const works = {
  "the replayer": (underWay: Promise<void>) => ({ step: { queueReplayBatch: () => underWay.then(() => null) } }),
  "the janitor": (underWay: Promise<void>) => ({ step: { failUndeliverable: () => underWay.then(() => false) } }),
  "what stops beside it": (beside: Promise<void>) => ({ beside }),
};

test.each(Object.entries(works))("a stop delivers until %s rests, and then begins nothing", async (_, work) => {
  const { promise: underWay, resolve: end } = Promise.withResolvers<void>();
  const { step, beside }: { step?: Partial<Store>; beside?: Promise<void> } = work(underWay);
  const { engine, sent } = setUp(step);
  await engine.start();
  await turn();
  const stopped = engine.stop(8_000, beside);
  await turn();
  engine.dispatcher.offer([dueDelivery({ deliveryKey: 1 })]);
  await turn();
  expect(sent).toEqual([1]);
  end();
  expect(await stopped).toBe(0);
  engine.dispatcher.offer([dueDelivery({ deliveryKey: 2 })]);
  await turn();
  expect(sent).toEqual([1]);
});

test.each<[string, Settled["kind"], number, string[]]>([
  ["settles its record counts as a failure, and the account is told", "settled", 1, ["postrider.delivery.exhausted"]],
  ["belongs to an overtaken run is only an attempt: the newer run will say", "superseded", 0, []],
])("a refusal that %s", async (_, kind, failed, told) => {
  const sums: (readonly StatDelta[])[] = [];
  const { engine, news } = setUp(
    {
      settle: async () => ({ kind, attempt: { tenantKey: 1, eventSeq: 1, key: 1 } }),
      addStats: async (deltas) => void sums.push(deltas),
      webhooks: async () => [],
    },
    everyJob,
    400,
  );
  await engine.start();
  engine.dispatcher.offer([dueDelivery()]);
  await turn();
  await engine.flush();
  expect(news).toEqual(told);
  expect(sums.flat()).toMatchObject(Array(2).fill({ attempts: 1, delivered: 0, failed }));
  await engine.stop(0);
});

test("an account that is deleted is told nothing more", async () => {
  const { engine, news, clock } = setUp({ webhooks: async () => [] }, everyJob, 400);
  await engine.start();
  engine.dispatcher.offer([dueDelivery({ deliveryKey: 1 }), dueDelivery({ deliveryKey: 2 })]);
  await engine.dispatcher.whenIdle();
  engine.deliveries.stopTenant(1);
  clock.advance(60_000);
  await turn();
  expect(news).toEqual(["postrider.delivery.exhausted"]);
  await engine.stop(0);
});

test("when a replay has ended, the account's next one begins without anybody's doing", async () => {
  let steps = 0;
  const replay = { status: "completed" } as Awaited<ReturnType<Store["replayByKey"]>>;
  const { engine, clock } = setUp({
    async queueReplayBatch() {
      steps += 1;
      return null;
    },
    replayByKey: async () => replay,
  });
  await engine.start();
  await turn();
  const before = steps;
  engine.dispatcher.offer([dueDelivery({ replayKey: 7, replayGroupId: "again" })]);
  await turn();
  expect(steps).toBe(before);
  clock.advance(500);
  await turn();
  expect(steps).toBe(before + 1);
});

test.each<[Job, (begun: () => Promise<void>) => Partial<Store>]>([
  ["replayer", (begun) => ({ queueReplayBatch: () => begun().then(() => null) })],
  ["janitor", (begun) => ({ failUndeliverable: () => begun().then(() => false) })],
])("the %s works where its job is, and where the others are does not matter", async (job, work) => {
  for (const isHeld of [true, false]) {
    let begun = 0;
    const step = work(async () => {
      begun += 1;
    });
    const { engine } = setUp(step, { ...everyJob, holds: (asked) => (asked === job) === isHeld });
    await engine.start();
    await turn();
    expect(begun > 0).toBe(isHeld);
    await engine.stop(0);
  }
});

test("what wakes the replayer reaches the node that has it, and begins there", async () => {
  let steps = 0;
  let isHeld = false;
  const told: Job[] = [];
  const wakes = new Map<Job, () => void>();
  const { engine } = setUp(
    {
      async queueReplayBatch() {
        steps += 1;
        return null;
      },
    },
    {
      ...everyJob,
      holds: () => isHeld,
      wake: (job) => void told.push(job),
      onWake: (job, wake) => void wakes.set(job, wake),
    },
  );
  await engine.start();
  await turn();
  engine.replayer.wake();
  await turn();
  expect([told, steps]).toEqual([["replayer"], 0]);
  isHeld = true;
  wakes.get("replayer")?.();
  await turn();
  expect([told, steps]).toEqual([["replayer"], 1]);
  await engine.stop(0);
});
