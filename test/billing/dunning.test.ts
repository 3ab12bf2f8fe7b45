import { describe, expect, test } from "bun:test";
import { afterFailure } from "../../src/billing/dunning.ts";

const dayMs = 24 * 60 * 60 * 1000;
const first = Date.UTC(2026, 10, 30, 11);

describe("after a month's end charge has failed", () => {
  test("it is tried again a day later", () => {
    expect(afterFailure(null, first)).toEqual({ kind: "retry", at: first + dayMs });
  });

  test.each([
    ["on day 1, it is tried on day 3", 1, 3],
    ["on day 3, it is tried on day 5", 3, 5],
    ["on day 5, it is tried on day 7", 5, 7],
    ["with a new card on day 2, it is still tried on day 3", 2, 3],
    ["after days of downtime, the days that were missed are not made up for", 4.5, 5],
  ])("%s", (_, failedOn, next) => {
    expect(afterFailure(first, first + failedOn * dayMs)).toEqual({ kind: "retry", at: first + next * dayMs });
  });

  test.each([7, 8, 40])("on day %i the account is suspended", (day) => {
    expect(afterFailure(first, first + day * dayMs)).toEqual({ kind: "suspend" });
  });
});
