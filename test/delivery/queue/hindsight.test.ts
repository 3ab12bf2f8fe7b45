import { describe, expect, test } from "bun:test";
import { createHindsight } from "../../../src/delivery/queue/hindsight.ts";

describe("hindsight", () => {
  test("has nothing against what it knows nothing of", () => {
    expect(createHindsight().isOutdated({ webhookKey: 3, tenantKey: 2 })).toBe(false);
  });

  test("nothing goes to a removed webhook or for a deleted account", () => {
    const hindsight = createHindsight();
    hindsight.webhookClosed(3);
    hindsight.tenantDeleted(7);
    const outdated = [
      { webhookKey: 3, tenantKey: 2 },
      { webhookKey: 4, tenantKey: 2 },
      { webhookKey: 4, tenantKey: 7 },
    ].map(hindsight.isOutdated);
    expect(outdated).toEqual([true, false, true]);
  });

  test("has nothing against anything once it has forgotten all", () => {
    const hindsight = createHindsight();
    hindsight.webhookClosed(3);
    hindsight.tenantDeleted(7);
    hindsight.replayCancelled(9);
    hindsight.forgetAll();
    expect(hindsight.isOutdated({ webhookKey: 3, tenantKey: 7 })).toBe(false);
    expect(hindsight.isCancelled({ replayKey: 9 })).toBe(false);
  });
});
