import { describe, expect, test } from "bun:test";
import { createHindsight } from "../../../src/delivery/queue/hindsight.ts";
import type { DueDelivery } from "../../../src/domain/delivery.ts";

const deliveryOf = (given: Partial<DueDelivery>): DueDelivery => ({
  deliveryKey: 1,
  tenantKey: 2,
  tenantId: "t2",
  tier: "free",
  webhookKey: 3,
  url: "https://shop.example/",
  eventSeq: 1,
  eventId: "evt_1",
  payload: new Uint8Array(2),
  run: 2,
  attemptsInRun: 1,
  attempts: 4,
  replayKey: null,
  replayGroupId: null,
  ...given,
});

describe("hindsight", () => {
  test("has nothing against what it knows nothing of", () => {
    expect(createHindsight().isOutdated(deliveryOf({}))).toBe(false);
  });

  test.each([
    ["the attempt that was settled", {}, true],
    ["an earlier one", { attemptsInRun: 0 }, true],
    ["one of an earlier run", { run: 1, attemptsInRun: 5 }, true],
    ["the next one", { attemptsInRun: 2 }, false],
    ["one of the next run", { run: 3, attemptsInRun: 0 }, false],
    ["that of another delivery", { deliveryKey: 9 }, false],
  ])("after an attempt was settled, %s is outdated: %j → %p", (_what, given, isOutdated) => {
    const hindsight = createHindsight();
    hindsight.attemptSettled(deliveryOf({}));
    expect(hindsight.isOutdated(deliveryOf(given))).toBe(isOutdated);
  });

  test("nothing goes to a removed webhook or for a deleted account", () => {
    const hindsight = createHindsight();
    hindsight.webhookRemoved(3);
    hindsight.tenantDeleted(7);
    const outdated = [{}, { webhookKey: 4 }, { webhookKey: 4, tenantKey: 7 }].map(deliveryOf).map(hindsight.isOutdated);
    expect(outdated).toEqual([true, false, true]);
  });
});
