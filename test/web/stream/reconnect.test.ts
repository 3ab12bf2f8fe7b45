import { describe, expect, test } from "bun:test";
import { type Ending, type Plan, planReconnect } from "../../../web/stream/reconnect.ts";

const unreachable: Ending = { kind: "unreachable" };
const cut = (stoodMs: number): Ending => ({ kind: "cut", stoodMs });
const refused = (retryAfterSeconds: number | null): Ending => ({ kind: "refused", message: "No.", retryAfterSeconds });

/** What follows when each try ends like this. */
function tries(ending: Ending, count: number, chance = 0.5): Plan[] {
  const plans: Plan[] = [];
  for (let failures = 0; plans.length < count; failures = plans.at(-1)?.failures ?? 0) {
    plans.push(planReconnect(ending, failures, chance));
  }
  return plans;
}

describe("after a connection that stood for a while", () => {
  test("the next try is soon and nobody is told", () => {
    expect(planReconnect(cut(7_200_000), 0, 0.5)).toEqual({
      failures: 0,
      pauseMs: 400,
      mayEndEarly: true,
      isQuiet: true,
    });
  });

  test("earlier failures are forgotten", () => {
    expect(planReconnect(cut(10_000), 6, 0.5)).toMatchObject({ failures: 0, pauseMs: 400 });
  });
});

describe("a server that takes connections and drops them at once", () => {
  test("is asked ever less often, and the second time it is told", () => {
    const plans = tries(cut(50), 4);
    expect(plans.map(({ isQuiet }) => isQuiet)).toEqual([true, false, false, false]);
    expect(plans.map(({ pauseMs }) => pauseMs)).toEqual([400, 800, 1600, 3200]);
  });
});

describe("a server that cannot be reached", () => {
  test("is asked ever less often, at least every 15 s", () => {
    expect(tries(unreachable, 8).map(({ pauseMs }) => pauseMs)).toEqual([
      400, 800, 1600, 3200, 6400, 12_800, 15_000, 15_000,
    ]);
    expect(tries(unreachable, 2000).at(-1)?.pauseMs).toBe(15_000);
  });

  test("is asked at once when the network or the user is back", () => {
    expect(tries(unreachable, 3).every(({ mayEndEarly, isQuiet }) => mayEndEarly && !isQuiet)).toBe(true);
  });

  test("is not asked by all at the same time", () => {
    const pauses = [0, 0.5, 0.999].map((chance) => planReconnect(unreachable, 5, chance).pauseMs);
    expect(pauses).toEqual([9600, 12_800, 15_994]);
  });
});

describe("a server that refuses", () => {
  test("is not asked before the time that it names, whoever comes back, nor by all at the same time", () => {
    expect(planReconnect(refused(15), 0, 0)).toEqual({
      failures: 1,
      pauseMs: 15_000,
      mayEndEarly: false,
      isQuiet: false,
    });
    expect(planReconnect(refused(15), 0, 0.5).pauseMs).toBe(16_875);
  });

  test("and is still asked less often than it names when it goes on refusing", () => {
    expect(tries(refused(2), 5).map(({ pauseMs }) => pauseMs)).toEqual([2250, 2250, 2250, 3200, 6400]);
  });

  test("without a time is asked like one that cannot be reached", () => {
    expect(planReconnect(refused(null), 0, 0.5)).toEqual(planReconnect(unreachable, 0, 0.5));
  });

  test("for a day, as a proxy may say, is asked after two minutes", () => {
    expect(planReconnect(refused(86_400), 0, 0).pauseMs).toBe(120_000);
  });
});

test("in a tab that nobody sees the next try waits for that alone, and nothing is forgotten or told", () => {
  expect(planReconnect({ kind: "unseen" }, 3, 0.5)).toEqual({
    failures: 3,
    pauseMs: 0,
    mayEndEarly: true,
    isQuiet: true,
  });
});
