import { describe, expect, test } from "bun:test";
import { TemporaryFailure } from "../../src/cli/client/failure.ts";
import { createPatience, pauseAfter } from "../../src/cli/client/patience.ts";
import { createManualClock } from "../support/manual-clock.ts";

const failure = (retryAfterMs: number | null = null) =>
  new TemporaryFailure("is away", { retryAfterMs, mayHaveArrived: false });

function begin(outcomes: (TemporaryFailure | Error | string)[], forMs?: number) {
  const { clock, timers, advance } = createManualClock();
  const abort = new AbortController();
  const said: string[] = [];
  const outage = { began: () => void said.push("began"), ended: () => void said.push("ended") };
  const patience = createPatience({ clock, signal: abort.signal, outage, ...(forMs !== undefined && { forMs }) });
  let tries = 0;
  const result = patience(async () => {
    tries += 1;
    const outcome = outcomes.shift();
    if (outcome instanceof Error) throw outcome;
    return outcome;
  });
  result.catch(() => {});
  return {
    result,
    said,
    abort,
    advance,
    tries: () => tries,
    /** When the pause under way ends, in ms from the start. */
    async due(): Promise<number> {
      while (timers.size === 0) await Promise.resolve();
      return [...timers.values()].map((at) => at - 1_000)[0] ?? 0;
    },
  };
}

describe("patience", () => {
  test("repeats what fails for now, with pauses that double", async () => {
    const { result, said, due, advance } = begin([failure(), failure(), failure(), "done"]);
    let before = 0;
    for (const full of [500, 1000, 2000]) {
      const pause = (await due()) - before;
      expect(pause).toBeGreaterThanOrEqual(full / 2);
      expect(pause).toBeLessThanOrEqual(full);
      before += pause;
      advance(pause);
    }
    expect(await result).toBe("done");
    expect(said).toEqual(["began", "began", "began", "ended"]);
  });

  test("waits as long as the server asks", async () => {
    const { result, due, advance, tries } = begin([failure(60_000), "done"]);
    expect(await due()).toBe(60_000);
    advance(59_999);
    expect(tries()).toBe(1);
    advance(1);
    expect(await result).toBe("done");
  });

  test.each([
    ["the pause would end too late", [failure(10_001)], 10_000],
    ["the time is over", [failure(9_000), failure(2_000)], 10_000],
  ])("gives up when %s", async (_, failures, forMs) => {
    const { result, due, advance } = begin([...failures], forMs);
    if (failures.length > 1) advance(await due());
    await expect(result).rejects.toThrow("is away");
  });

  test("does not repeat what fails for good", async () => {
    const { result, tries } = begin([new Error("no")]);
    await expect(result).rejects.toThrow("no");
    expect(tries()).toBe(1);
  });

  test("ends its pause when it is told to", async () => {
    const { result, due, abort } = begin([failure(60_000), "done"]);
    await due();
    abort.abort(new Error("interrupted"));
    await expect(result).rejects.toThrow("interrupted");
  });

  test.each([
    [1, 500],
    [2, 1_000],
    [5, 8_000],
    [6, 10_000],
    [1_000, 10_000],
  ])("after %i failures the pause is at most %i ms, and at least half of that", (failures, full) => {
    expect(pauseAfter(failures, () => 0)).toBe(full / 2);
    expect(pauseAfter(failures, () => 1)).toBe(full);
  });
});
