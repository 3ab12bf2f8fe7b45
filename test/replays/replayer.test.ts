import { afterEach, describe, expect, test } from "bun:test";
import { unavailable } from "../../src/domain/errors.ts";
import type { Replay } from "../../src/domain/replay.ts";
import { silentLog } from "../../src/lib/log.ts";
import type { Loop } from "../../src/lib/loop.ts";
import { createReplayer } from "../../src/replays/replayer.ts";
import type { ReturnedRecords, Store } from "../../src/store/store.ts";
import { createFakeClock } from "../support/fake-clock.ts";

type Batch = Awaited<ReturnType<Store["queueReplayBatch"]>>;

const batch = (queued: number, webhookKeys: number[] = [7]): Batch => ({
  tenantId: "t1",
  tenantKey: 1,
  webhooks: webhookKeys.map((webhookKey) => ({ tenantKey: 1, webhookKey })),
  overtaken: [],
  eventIds: ["evt_1", "evt_2"],
  replay: { ...waitingReplay, status: "running", queued },
});

const waitingReplay: Replay = {
  id: "rpl_1",
  kind: "all",
  replayGroupId: "label",
  status: "waiting",
  selected: 1000,
  queued: 0,
  delivered: 0,
  failed: 0,
  superseded: 0,
  skipped: 0,
  returned: 0,
  payloadsErased: 0,
  createdAt: 0,
  completedAt: null,
  filter: null,
};

/** A replayer over a store that answers with what a test lines up, then with "nothing to do". */
function setUp(lineUp: (Batch | Error)[] = [], back: (ReturnedRecords | "owned")[] = []) {
  const clock = createFakeClock();
  const calls: number[] = [];
  const woken: number[][] = [];
  const published: Record<string, unknown>[] = [];
  let onCall = () => {};
  const replayer = createReplayer({
    store: {
      returnCancelled: async () => back.shift() ?? null,
      async queueReplayBatch(limit) {
        calls.push(limit);
        onCall();
        const next = lineUp.shift() ?? null;
        if (next instanceof Error) throw next;
        return next;
      },
    },
    deliveries: {
      wake: (webhooks) => void woken.push(webhooks.map(({ webhookKey }) => webhookKey)),
      overtake: () => {},
    },
    hub: { publish: (tenantId, event, data) => void published.push({ tenantId, event, ...data() }) },
    clock,
    log: silentLog,
    mayRun: () => true,
    passOn() {},
  });
  running.push(replayer);
  const nextCall = () => new Promise<void>((resolve) => (onCall = resolve));
  const onEachCall = (action: () => void) => (onCall = action);
  return { replayer, clock, calls, woken, published, lineUp, nextCall, onEachCall };
}

const running: Loop[] = [];
afterEach(async () => {
  for (const replayer of running.splice(0)) await replayer.stop();
});

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

describe("the replayer", () => {
  test("goes on with what an earlier process left, in chunks of 100, until nothing is left", async () => {
    const { replayer, calls } = setUp([batch(100), batch(200), batch(300)]);
    replayer.start();
    await replayer.whenIdle();
    expect(calls).toEqual([100, 100, 100, 100]);
  });

  test("wakes the webhooks of each chunk and announces the replay as the API shows it", async () => {
    const { replayer, woken, published } = setUp([batch(100, [7, 8]), batch(100, [])]);
    replayer.start();
    await replayer.whenIdle();
    expect(woken).toEqual([[7, 8]]);
    expect(published).toHaveLength(2);
    expect(published[0]).toMatchObject({
      tenantId: "t1",
      event: "replay.progressed",
      kind: "all",
      id: "rpl_1",
      status: "running",
      queued: 100,
      createdAt: "1970-01-01T00:00:00.000Z",
      completedAt: null,
      eventIds: ["evt_1", "evt_2"],
      queuedAt: expect.any(String),
    });
  });

  test("lets what waits for cancelled replays return before it queues more, and wakes where it waits again", async () => {
    const back = { replay: waitingReplay, tenantId: "t1" };
    const { replayer, woken, calls, published } = setUp(
      [],
      [
        { ...back, webhooks: [{ tenantKey: 1, webhookKey: 7 }] },
        { ...back, webhooks: [] },
      ],
    );
    replayer.start();
    await replayer.whenIdle();
    expect([woken, calls.length, published.length]).toEqual([[[7]], 1, 2]);
  });

  test("looks again for what is in flight as its replay is cancelled", async () => {
    const { replayer, clock, calls } = setUp([], ["owned", "owned"]);
    replayer.start();
    await replayer.whenIdle();
    for (const looks of [2, 3, 3]) {
      clock.advance(250);
      await turn();
      await replayer.whenIdle();
      expect(calls).toHaveLength(looks);
    }
  });

  test("rests until it is woken", async () => {
    const { replayer, calls, lineUp } = setUp();
    replayer.start();
    await replayer.whenIdle();
    expect(calls).toHaveLength(1);
    lineUp.push(batch(100));
    replayer.wake();
    await replayer.whenIdle();
    expect(calls).toHaveLength(3);
  });

  test("takes another step when it was woken during one", async () => {
    const { replayer, calls, nextCall } = setUp();
    const called = nextCall();
    replayer.start();
    await called;
    replayer.wake();
    await replayer.whenIdle();
    expect(calls).toHaveLength(2);
  });

  test("gives the event loop a turn between two chunks", async () => {
    let turns = 0;
    const turnsBefore: number[] = [];
    const { replayer, onEachCall } = setUp([batch(100), batch(200), batch(300)]);
    onEachCall(() => {
      turnsBefore.push(turns);
      setImmediate(() => (turns += 1));
    });
    replayer.start();
    await replayer.whenIdle();
    expect(turnsBefore).toEqual([0, 1, 2, 3]);
  });

  test("survives a store that takes no writes for a while", async () => {
    const failure = unavailable("The disk is full.", "storage_full");
    const { replayer, calls, clock, woken } = setUp([failure, failure, batch(100)]);
    replayer.start();
    await turn();
    replayer.wake(); // does not cut the pause short
    await turn();
    expect(calls).toHaveLength(1);
    clock.advance(1000);
    await turn();
    expect(calls).toHaveLength(2);
    clock.advance(1000);
    await replayer.whenIdle();
    expect(woken).toEqual([[7]]);
  });

  test("stops after the chunk under way, and also out of a pause", async () => {
    const busy = setUp(Array.from({ length: 50 }, () => batch(100)));
    busy.replayer.start();
    await turn();
    await busy.replayer.stop();
    const { length } = busy.calls;
    expect(length).toBeLessThan(50);
    busy.replayer.wake();
    await turn();
    expect(busy.calls).toHaveLength(length);

    const paused = setUp([unavailable("The disk is full.", "storage_full")]);
    paused.replayer.start();
    await turn();
    await paused.replayer.stop();
    expect(paused.clock.timers).toBe(0);
  });
});
