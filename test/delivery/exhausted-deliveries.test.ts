import { expect, test } from "bun:test";
import { createExhaustedDeliveries } from "../../src/delivery/exhausted-deliveries.ts";
import { ownPayload } from "../../src/domain/own-events.ts";
import type { Settlement } from "../../src/store/deliveries.ts";
import { dueDelivery } from "../support/due-delivery.ts";
import { createFakeClock } from "../support/fake-clock.ts";
import { settlementOf } from "../support/store-factory.ts";
import { registered } from "../support/tenant-state.ts";

/** What is told, in words. @param isTold whether no other server has just told the same */
function setUp(isTold: () => boolean = () => true) {
  const clock = createFakeClock();
  const told: string[] = [];
  const exhausted = createExhaustedDeliveries({
    clock,
    async tell({ type, about, fields }) {
      if (!isTold()) return false;
      told.push(`${type.split(".").at(-1)} ${about.webhookKey} ${fields.count ?? ""}`.trim());
      return true;
    },
  });
  const settle = (outcome: "delivered" | "failed" | "retry", given: Partial<Settlement["delivery"]> = {}) =>
    exhausted.attempted(settlementOf({ ...dueDelivery(), ...given }, outcome, clock.now()));
  return { clock, told, exhausted, settle };
}

test("nothing is told of deliveries that succeed, or are tried again", () => {
  const { settle, told } = setUp();
  settle("delivered");
  settle("retry");
  settle("delivered");
  expect(told).toEqual([]);
});

test("the first is told at once, and what fails in the minute after it is counted", () => {
  const { clock, settle, told } = setUp();
  settle("failed", { webhookKey: 1 });
  expect(told).toEqual(["exhausted 1 1"]);
  for (let i = 0; i < 500; i++) settle("failed", { webhookKey: 1 });
  settle("failed", { webhookKey: 2 });
  expect(told).toEqual(["exhausted 1 1", "exhausted 2 1"]);
  clock.advance(60_000);
  expect(told).toEqual(["exhausted 1 1", "exhausted 2 1", "exhausted 1 500"]);
  clock.advance(60_000);
  settle("failed", { webhookKey: 1 });
  expect(told.at(-1)).toBe("exhausted 1 1");
});

test("a success is told once, when nothing fails any more", () => {
  const { clock, settle, told } = setUp();
  settle("failed", { webhookKey: 1 });
  clock.advance(60_000);
  settle("delivered", { webhookKey: 1 });
  settle("delivered", { webhookKey: 1 });
  expect(told).toEqual(["exhausted 1 1", "recovered 1"]);
});

test("one that fails and succeeds in turns is told of twice a minute at most", () => {
  const { clock, settle, told } = setUp();
  for (let minute = 0; minute < 10; minute++) {
    for (let i = 0; i < 100; i++) {
      settle("failed", { webhookKey: 1 });
      settle("delivered", { webhookKey: 1 });
    }
    clock.advance(60_000);
  }
  expect(told.length).toBeLessThanOrEqual(20);
  expect(told.filter((one) => one.startsWith("exhausted")).length).toBeGreaterThan(5);
});

test("of a delivery of our own news nothing is told: two webhooks would tell each other for ever", () => {
  const { clock, settle, told } = setUp();
  const payload = ownPayload("postrider.delivery.exhausted", registered(2), {});
  settle("failed", { payload });
  expect(told).toEqual([]);
  settle("failed");
  clock.advance(60_000);
  settle("delivered", { payload });
  expect(told).toEqual(["exhausted 1 1"]);
  settle("delivered");
  expect(told).toEqual(["exhausted 1 1", "recovered 1"]);
});

test("of a webhook that was removed nothing more is told", () => {
  const { clock, settle, told, exhausted } = setUp();
  settle("failed", { webhookKey: 1 });
  settle("failed", { webhookKey: 1 });
  exhausted.forget([1, 2]);
  clock.advance(60_000);
  expect(told).toEqual(["exhausted 1 1"]);
});

test("of an account that was deleted nothing more is told, and of the others still", () => {
  const { clock, settle, told, exhausted } = setUp();
  for (const key of [1, 2, 1, 2]) settle("failed", { tenantKey: key, webhookKey: key });
  exhausted.forgetTenant(1);
  clock.advance(60_000);
  expect(told).toEqual(["exhausted 1 1", "exhausted 2 1", "exhausted 2 1"]);
});

test("of ten thousand webhooks, the one told of longest ago gives way to another, but not within its minute", () => {
  const { clock, settle, told } = setUp();
  for (let key = 1; key <= 10_000; key++) settle("failed", { webhookKey: key });
  settle("failed", { webhookKey: 10_001 });
  expect(told.length).toBe(10_000);
  settle("failed", { webhookKey: 1 });
  clock.advance(60_000);
  settle("failed", { webhookKey: 10_001 });
  expect(told.slice(10_000)).toEqual(["exhausted 1 1", "exhausted 10001 1"]);
  for (const key of [1, 2, 3]) settle("delivered", { webhookKey: key });
  clock.advance(60_000);
  expect(told.slice(10_002)).toEqual(["recovered 3", "recovered 1"]);
});

test("what another server told instead is in the count of the next report, if anything fails by then", async () => {
  let isTold = false;
  const { clock, settle, told } = setUp(() => isTold);
  settle("failed", { webhookKey: 1 });
  settle("failed", { webhookKey: 2 });
  for (let i = 0; i < 3; i++) settle("failed", { webhookKey: 1 });
  settle("delivered", { webhookKey: 2 });
  await Promise.resolve();
  isTold = true;
  clock.advance(60_000);
  expect(told).toEqual(["exhausted 1 4", "recovered 2"]);
});
