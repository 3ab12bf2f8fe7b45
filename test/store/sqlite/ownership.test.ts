import { expect, test } from "bun:test";
import { createOwnership } from "../../../src/store/sqlite/ownership.ts";

const deliveries = (webhooks: number) =>
  Array.from({ length: webhooks }, (_, key) => ({ webhookKey: key + 1, deliveryKey: key + 1 }));

test("what is taken twice is owned once, and nobody's as soon as it has ended", () => {
  const ownership = createOwnership();
  const delivery = { webhookKey: 1, deliveryKey: 7 };
  ownership.take([delivery, delivery]);
  expect([ownership.listOf(1), ownership.listAll(), ownership.has(delivery)]).toEqual(["[7]", "[7]", true]);
  ownership.end([delivery, delivery]);
  expect([ownership.listOf(1), ownership.listAll(), ownership.has(delivery)]).toEqual(["[]", "[]", false]);
});

test("webhooks of which nothing is owned are forgotten in time, and no other one", () => {
  const ownership = createOwnership();
  const all = deliveries(3_000);
  const kept = all.filter(({ webhookKey }) => webhookKey % 100 === 0);
  for (let round = 0; round < 3; round++) {
    ownership.take(all);
    for (const delivery of all) if (!kept.includes(delivery)) ownership.end([delivery]);
    expect(JSON.parse(ownership.listAll())).toEqual(kept.map(({ deliveryKey }) => deliveryKey));
    for (const { webhookKey, deliveryKey } of kept) expect(ownership.listOf(webhookKey)).toBe(`[${deliveryKey}]`);
  }
});
