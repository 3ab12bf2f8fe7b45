import { describe, expect, test } from "bun:test";
import { effectOf, isStandard } from "../../../../web/pages/inbox/answers.ts";

describe("what the inbox's answer does to a delivery", () => {
  test.each([
    [{ status: 204, delay_ms: 0, silent: false }, "DELIVERED", "Any 2xx"],
    [{ status: 404, delay_ms: 0, silent: false }, "FAILED", "permanent failure"],
    [{ status: 503, delay_ms: 2000, silent: false }, "PENDING", "The inbox responds after 2 s. After a 5xx"],
    [{ status: 204, delay_ms: 9999, silent: false }, "DELIVERED", "Any 2xx"],
    [{ status: 204, delay_ms: 10_000, silent: false }, "PENDING", "waits 10 s"],
    [{ status: 204, delay_ms: 0, silent: true }, "PENDING", "does not respond"],
  ] as const)("%o: %s", (answer, state, rule) => {
    const effect = effectOf(answer);
    expect(effect.state).toBe(state);
    expect(effect.rule).toContain(rule);
  });

  test("only 204, at once, is the standard", () => {
    expect(isStandard({ status: 204, delay_ms: 0, silent: false })).toBe(true);
    expect(isStandard({ status: 204, delay_ms: 0, silent: true })).toBe(false);
    expect(isStandard({ status: 200, delay_ms: 0, silent: false })).toBe(false);
  });
});
