import { expect, test } from "bun:test";
import type { Store } from "../../../src/store/store.ts";
import { dueDelivery } from "../../support/due-delivery.ts";
import { type Costs, costsOf, type JourneyCosts, stagesOf } from "./journey-report.ts";
import { variants } from "./journey-variants.ts";
import type { PhaseResult } from "./phase.ts";

const thread = (name: string, cores: number) => ({ name, cores, wakeups: 0 });

test("the time of an event is divided among threads by the order of their starts", () => {
  const threads = [
    thread("bun", 0.5),
    thread("HeapHelper", 0.1),
    thread("Worker", 0.05),
    thread("Worker 2", 0.3),
    thread("JITWorker", 0.05),
  ];
  const result = { acceptedRate: 10_000 } as PhaseResult;
  const { all, storing, sending, log, rest } = costsOf(result, threads, 2);
  expect([all, storing, sending, log, rest].map(Math.round)).toEqual([100, 50, 30, 5, 15]);
  expect(() => costsOf(result, threads, 1)).toThrow("2 Workers and not 1");
});

test("the stages of an event add up to all of it", () => {
  const taking = (all: number): Costs => ({ rate: 1, all, storing: all, sending: 7, log: 0, rest: 0 });
  const costs: JourneyCosts = {
    listener: taking(20),
    all: taking(130),
    "no-settling": taking(110),
    "no-storing": taking(90),
    "no-deliveries": taking(70),
    "only-http": taking(40),
  };
  const stages = stagesOf(costs, 3);
  expect(stages.map(({ us }) => us)).toEqual([20, 20, 30, 50, 3, 7, 20, -10]);
  const whole = stages.filter(({ isPart }) => !isPart).reduce((sum, { us }) => sum + us, 0);
  expect(whole).toBe(costs.all.all);
});

test("a store that stores nothing hands out each event once, under a name of its own", async () => {
  const sample = dueDelivery();
  const eventIds = [sample.eventId];
  let stored = 0;
  const store = {
    async acceptEvents() {
      stored += 1;
      return { eventIds, repeated: false, deliveries: [sample], unowned: [], failed: [] };
    },
  } as Partial<Store> as Store;
  const { acceptEvents } = variants["no-storing"].replacing(store);
  const payloads = ["first", "second", "third"].map((text) => Buffer.from(text));
  const accepted = [];
  for (const payload of payloads) {
    const events = [{ payload, type: null }];
    accepted.push(await acceptEvents?.({ tenantKey: sample.tenantKey, apiKeyId: "key_1", events }));
  }
  expect(stored).toBe(1);
  const deliveries = accepted.flatMap((each) => each?.deliveries ?? []);
  expect(new Set(deliveries.map(({ deliveryKey }) => deliveryKey)).size).toBe(3);
  expect(deliveries.map(({ eventId }) => eventId)).toEqual(accepted.flatMap((each) => each?.eventIds ?? []));
  expect(deliveries.slice(1).map(({ payload }) => payload)).toEqual(payloads.slice(1));
});
