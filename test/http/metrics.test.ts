import { describe, expect, test } from "bun:test";
import { createMetrics } from "../../src/http/metrics.ts";
import { createFakeClock } from "../support/fake-clock.ts";
import { metricSources } from "../support/metric-sources.ts";

const read = (text: string, name: string) => Number(new RegExp(`^${name}(?:\\{.*\\})? (.+)$`, "m").exec(text)?.[1]);

describe("the metrics", () => {
  test("are told without the queue when the store has not said in time how long it is", async () => {
    const clock = createFakeClock();
    const answers = [Promise.resolve({ pending: 7, oldestDueAt: null }), new Promise<never>(() => {})];
    const metrics = createMetrics(
      metricSources({ clock, openStreams: () => 3, queueDepth: () => answers.shift() ?? Promise.reject() }),
    );
    expect(read(await metrics.text(), "postrider_queue_depth")).toBe(7);
    const late = metrics.text();
    expect(clock.nextTimerMs).toBeLessThan(10_000);
    clock.advance(clock.nextTimerMs ?? 0);
    const text = await late;
    expect(read(text, "postrider_queue_depth")).toBe(7);
    expect(read(text, "postrider_open_streams")).toBe(3);
    expect(clock.timers).toBe(0);
  });
});
