import { expect, test } from "bun:test";
import type { Tenant } from "../../src/domain/tenant.ts";
import { createIngest } from "../../src/events/ingest.ts";
import type { AcceptedEvents, AcceptRequest } from "../../src/store/store.ts";
import { dueDelivery } from "../support/due-delivery.ts";
import { untyped } from "../support/store-factory.ts";

const tenantOf = (key: number) => ({ key, id: `t${key}` }) as Tenant;
const withKey = { apiKeyId: "key_1" };
const batch = [new Uint8Array(2), new Uint8Array(2)].map(untyped);

/** A store that answers when the test says so. */
function setUp() {
  const told: [string, number[]][] = [];
  const asked: { request: AcceptRequest; answer(given?: Partial<AcceptedEvents>): void; fail(): void }[] = [];
  const ingest = createIngest({
    store: {
      acceptEvents: (request: AcceptRequest) =>
        new Promise<AcceptedEvents>((resolve, reject) => {
          const eventIds = request.events.map(() => "evt_1");
          asked.push({
            request,
            answer: (given = {}) =>
              resolve({ eventIds, repeated: false, deliveries: [], unowned: [], failed: [], ...given }),
            fail: () => reject(new Error("the store")),
          });
        }),
    },
    dispatcher: {
      roomFor: ({ webhookKey }) => webhookKey,
      offer: (deliveries) => void told.push(["offered", deliveries.map(({ deliveryKey }) => deliveryKey)]),
      wake: (webhooks) => void told.push(["woken", webhooks.map(({ webhookKey }) => webhookKey)]),
    },
    announce() {},
    backpressure: { begin: () => null, end() {} },
  });
  const turn = () => new Promise((resolve) => setImmediate(resolve));
  return { ingest, asked, told, turn, tenants: () => asked.map(({ request }) => request.tenantKey) };
}

test("batches of one account wait for each other, and no one else waits for them", async () => {
  const { ingest, asked, turn, tenants } = setUp();
  const all = [
    ingest(tenantOf(1), batch, withKey),
    ingest(tenantOf(1), batch, withKey),
    ingest(tenantOf(2), batch, withKey),
    ingest(tenantOf(1), [untyped(new Uint8Array(2))], withKey),
  ];
  await turn();
  expect(tenants().sort()).toEqual([1, 1, 2]);
  for (const { answer } of asked) answer();
  await turn();
  expect(tenants()).toHaveLength(4);
  asked[3]?.answer();
  await Promise.all(all);
});

test("a batch that fails does not hold up the next one", async () => {
  const { ingest, asked, turn } = setUp();
  const first = ingest(tenantOf(1), batch, withKey);
  const second = ingest(tenantOf(1), batch, withKey);
  await turn();
  asked[0]?.fail();
  expect(first).rejects.toThrow("the store");
  await turn();
  asked[1]?.answer();
  expect(await second).toHaveLength(2);
});

test("what is owned is offered, and where the rest waits is woken", async () => {
  const { ingest, asked, told, turn } = setUp();
  const ingested = ingest(tenantOf(1), batch, withKey);
  await turn();
  expect(asked[0]?.request.roomFor?.({ tenantKey: 1, webhookKey: 7 })).toBe(7);
  asked[0]?.answer({ deliveries: [dueDelivery({ deliveryKey: 3 })], unowned: [{ tenantKey: 1, webhookKey: 8 }] });
  await ingested;
  expect(told).toEqual([
    ["offered", [3]],
    ["woken", [8]],
  ]);
});
