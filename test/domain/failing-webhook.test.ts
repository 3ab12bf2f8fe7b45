import { describe, expect, test } from "bun:test";
import { afterFailures, type Failing, type Failures, goneSince } from "../../src/domain/failing-webhook.ts";

const hour = 3_600_000;
const day = 24 * hour;
const start = Date.UTC(2026, 0, 1);

const failing = (given: Partial<Failing> = {}): Failing => ({
  since: start,
  goneInARow: 0,
  toldAt: null,
  warnedAt: null,
  ...given,
});

const failedAt = (at: number, given: Partial<Failures> = {}): Failures => ({
  since: start + at,
  at: start + at,
  gone: [],
  excusedMs: 0,
  ...given,
});

/** What comes of failures at these times, in words; `stop` says at which the webhook was disabled. */
function story(times: readonly number[], disableAfterMs: number | null, excusedMs: (at: number) => number = () => 0) {
  const told: number[] = [];
  let before: Failing | null = null;
  for (const at of times) {
    const effect = afterFailures(before, failedAt(at, { excusedMs: excusedMs(at) }), { disableAfterMs });
    if (effect.isToldNow) told.push(at);
    if (effect.disabled) return { told, disabledAt: at, reason: effect.disabled.reason };
    before = effect.failing;
  }
  return { told, disabledAt: null, reason: null };
}

const every = (step: number, until: number) => Array.from({ length: until / step + 1 }, (_, i) => i * step);

describe("a webhook of which every attempt fails (rules, section 14)", () => {
  test.each<[string, number[], number | null, number[], number | null]>([
    ["is disabled after the time", every(hour, 10 * day), 5 * day, [day, 4 * day], 5 * day],
    ["not a moment earlier", every(hour, 5 * day - hour), 5 * day, [day, 4 * day], null],
    ["never, if the operator wants so", every(hour, 90 * day), null, [day], null],
    ["after twelve hours at least", every(hour, day), hour, [], 12 * hour],
    ["within a day without a warning", every(hour, 2 * day), day, [], day],
    [
      "of a day and an hour is warned first, and told a day after",
      every(hour, 2 * day),
      day + hour,
      [hour, day],
      day + hour,
    ],
    ["of a day and a half is, too", every(hour, 2 * day), 36 * hour, [12 * hour, day], 36 * hour],
    [
      "of nearly two days is, one shortly before the other",
      every(hour, 2 * day),
      47 * hour,
      [23 * hour, day],
      47 * hour,
    ],
    ["of two days is told and warned at once", every(hour, 3 * day), 2 * day, [day], 2 * day],
    ["of little more is told first", every(hour, 3 * day), 49 * hour, [day, 25 * hour], 49 * hour],
    [
      "of a day and a half is told and warned at once after a pause",
      [0, 30 * hour, 53 * hour, 54 * hour],
      36 * hour,
      [30 * hour],
      54 * hour,
    ],
    [
      "that was warned late still has a day, and is told in it",
      [0, 13 * hour, 30 * hour, 36 * hour, 37 * hour],
      36 * hour,
      [13 * hour, 30 * hour],
      37 * hour,
    ],
    [
      "with rare attempts has a day after the warning",
      [0, 6 * day, 6 * day + hour, 7 * day],
      5 * day,
      [6 * day],
      7 * day,
    ],
    ["stays while nothing is sent", [0], 5 * day, [], null],
  ])("%s", (_, times, disableAfterMs, told, disabledAt) => {
    const reason = disabledAt === null ? null : "failing";
    expect(story(times, disableAfterMs)).toEqual({ told, disabledAt, reason } as never);
  });

  test("does not count an outage of our own, before or after it was warned", () => {
    const lost = (day_: number) => (at: number) => (at === day_ * day ? 2 * day : 0);
    const daily = every(day, 20 * day);
    expect(story(daily, 5 * day)).toMatchObject({ told: [day, 4 * day], disabledAt: 5 * day });
    expect(story(daily, 5 * day, lost(3))).toMatchObject({ told: [day, 6 * day], disabledAt: 7 * day });
    expect(story(daily, 5 * day, lost(5))).toMatchObject({ told: [day, 4 * day], disabledAt: 7 * day });
  });

  test("is credited an outage once, whoever else reports it, and what another one has lost beyond that", () => {
    const before = failing({ warnedAt: start + 4 * day });
    const credit = (row: Failing, excusedMs: number) =>
      afterFailures(row, failedAt(5 * day, { since: start, excusedMs }), { disableAfterMs: 90 * day }).failing;
    const once = credit(before, 6 * hour);
    expect(once).toMatchObject({ since: start + 6 * hour, warnedAt: start + 4 * day + 6 * hour });
    expect(credit(once, 6 * hour)).toMatchObject(once);
    expect(credit(once, 7 * hour)).toMatchObject({ since: start + 7 * hour, warnedAt: start + 4 * day + 7 * hour });
  });

  test("begins at its latest failure, if all before it was an outage", () => {
    const effect = afterFailures(failing(), failedAt(6 * day, { excusedMs: 9 * day }), { disableAfterMs: 5 * day });
    expect(effect).toMatchObject({ disabled: null, failing: { since: start + 6 * day } });
  });
});

describe("deliveries that are answered 410", () => {
  test.each<[number, number | null, object | null]>([
    [2, 5 * day, null],
    [3, 5 * day, { at: start + hour, reason: "gone" }],
    [4, 5 * day, { at: start + hour, reason: "gone" }],
    [3, null, null],
  ])("%i in a row, disabled after %p: %j", (inARow, disableAfterMs, disabled) => {
    expect(
      afterFailures(failing(), failedAt(hour, { gone: Array(inARow).fill(start) }), { disableAfterMs }).disabled,
    ).toEqual(disabled as never);
  });

  test.each<[string, [endedAt: number, statusCode: number | null][], number[]]>([
    [
      "goes on, if the records tell of nothing else",
      [
        [1, null],
        [2, 410],
        [5, 410],
      ],
      [2, 5, 9],
    ],
    [
      "begins after a success elsewhere",
      [
        [7, null],
        [3, null],
        [9, 410],
      ],
      [9],
    ],
    [
      "begins after another failure elsewhere",
      [
        [2, 404],
        [9, 410],
      ],
      [5, 9],
    ],
    ["is over, if that was the latest", [[9, null]], []],
  ])("the row of them %s", (_, ended, left) => {
    expect(
      goneSince(
        [2, 5, 9],
        ended.map(([endedAt, statusCode]) => ({ endedAt, statusCode })),
      ),
    ).toEqual(left);
  });
});

test.each<[string, Failing | null, number, number | null, number]>([
  ["of a new failure is a day later", null, 0, 5 * day, day],
  ["of one who was told is the warning", failing({ toldAt: start + day }), day + hour, 5 * day, 4 * day],
  ["of one who is told now too", failing(), day, 5 * day, 4 * day],
  ["of one who is warned first is a day after the first", failing(), 12 * hour, 36 * hour, day],
  [
    "of one who was warned first, and is told now, is the end",
    failing({ warnedAt: start + 12 * hour }),
    day,
    36 * hour,
    36 * hour,
  ],
  ["of one who is warned now is the end", failing({ toldAt: start + day }), 4 * day, 5 * day, 5 * day],
  ["of one who was warned late a day after it", failing({ toldAt: start + day }), 9 * day, 5 * day, 10 * day],
  ["of one who is told, and never disabled, never comes", failing(), 2 * day, null, Number.POSITIVE_INFINITY],
])("when another failure matters %s", (_, before, at, disableAfterMs, next) => {
  expect(afterFailures(before, failedAt(at), { disableAfterMs }).lookAgainAt - start).toBe(next);
});
