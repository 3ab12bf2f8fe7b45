import { describe, expect, test } from "bun:test";
import { createStatRecorder } from "../../src/maintenance/stat-recorder.ts";
import type { RefusalDelta, StatDelta } from "../../src/store/stats.ts";
import { createFakeClock } from "../support/fake-clock.ts";

describe("statistics that the store refuses", () => {
  function setUp() {
    const clock = createFakeClock();
    const storage = { refuses: true };
    const written: (StatDelta | RefusalDelta)[] = [];
    const write = async (deltas: readonly (StatDelta | RefusalDelta)[]) => {
      if (storage.refuses) throw new Error("The disk is full");
      written.push(...deltas);
    };
    const recorder = createStatRecorder({ store: { addStats: write, addRefused: write }, clock });
    /** Lets a second pass, and its writes end. */
    const second = async () => {
      clock.advance(1_000);
      for (let i = 0; i < 10; i += 1) await Promise.resolve();
    };
    return { clock, storage, written, recorder, second };
  }

  const ended = { ended: "delivered", answered: true, durationMs: 5 } as const;

  test("are written when it takes them again, each row once", async () => {
    const { storage, written, recorder, second } = setUp();
    recorder.attempted({ tenantKey: 1, webhookKey: 2 }, ended);
    recorder.refused(1, "quota", 3);
    await second();
    recorder.attempted({ tenantKey: 1, webhookKey: 2 }, ended);
    recorder.refused(1, "quota", 4);
    await second();
    expect(written).toEqual([]);
    storage.refuses = false;
    await second();
    expect(written).toHaveLength(3);
    expect(written).toMatchObject([
      { tenantKey: 1, attempts: 2, delivered: 2, latency: new Map([[expect.any(Number), 2]]) },
      { tenantKey: 1, webhookKey: 2, attempts: 2, delivered: 2 },
      { tenantKey: 1, reason: "quota", events: 7 },
    ]);
  });

  test("stay in their minutes", async () => {
    const { clock, storage, written, recorder, second } = setUp();
    recorder.accepted(1, { events: 1, failed: [] });
    await second();
    clock.step(60_000);
    recorder.accepted(1, { events: 2, failed: [] });
    storage.refuses = false;
    await second();
    expect(written).toMatchObject([{ accepted: 1 }, { accepted: 2 }]);
  });

  test("end the flush with the error, and are written by the next one", async () => {
    const { storage, written, recorder } = setUp();
    recorder.accepted(1, { events: 1, failed: [] });
    await expect(recorder.flush()).rejects.toThrow("The disk is full");
    storage.refuses = false;
    await recorder.flush();
    expect(written).toMatchObject([{ accepted: 1 }]);
  });

  test("are kept up to 10,000 rows", async () => {
    const { storage, written, recorder, second } = setUp();
    for (let tenantKey = 1; tenantKey <= 10_001; tenantKey += 1)
      recorder.accepted(tenantKey, { events: 1, failed: [] });
    await second();
    storage.refuses = false;
    await second();
    expect(written).toHaveLength(10_000);
  });
});
