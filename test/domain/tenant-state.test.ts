import { describe, expect, test } from "bun:test";
import type { DeliveryState } from "../../src/domain/delivery.ts";
import {
  type Counters,
  countEvent,
  enterState,
  leaveState,
  moveState,
  noEvents,
  openMonth,
  recordsIn,
  utcMonth,
} from "../../src/domain/tenant-state.ts";

const lastOfJanuary = Date.UTC(2026, 0, 31, 23, 59, 59, 999);
const firstOfFebruary = lastOfJanuary + 1;
const counters: Counters = {
  month: 202601,
  eventsInMonth: 7,
  events: 20,
  pending: 3,
  delivered: 15,
  failed: 2,
  skipped: 0,
};

describe("the month of an event (rules, section 2)", () => {
  test.each([
    [lastOfJanuary, 202601],
    [firstOfFebruary, 202602],
    [Date.UTC(2026, 11, 31, 23, 59), 202612],
    [Date.UTC(2027, 0, 1), 202701],
  ])("%i is in %i, by UTC", (at, month) => {
    expect(utcMonth(at)).toBe(month);
  });

  test.each([
    ["the same month goes on counting", lastOfJanuary, { month: 202601, eventsInMonth: 7 }],
    ["a new month counts from nothing", firstOfFebruary, { month: 202602, eventsInMonth: 0 }],
    ["a new year does too", Date.UTC(2027, 0, 1), { month: 202701, eventsInMonth: 0 }],
    ["an earlier month is never opened again", Date.UTC(2025, 11, 31), { month: 202601, eventsInMonth: 7 }],
  ])("%s", (_, at, expected) => {
    expect(openMonth(counters, at)).toEqual({ ...counters, ...expected });
  });
});

describe("an accepted event", () => {
  const records = (...states: DeliveryState[]) => states.map((state) => ({ state }));

  test.each([
    ["without a webhook", records("FAILED"), { failed: 3 }],
    ["for one webhook", records("PENDING"), { pending: 4 }],
    ["for three webhooks", records("PENDING", "PENDING", "PENDING"), { pending: 6 }],
  ])("%s counts once, whatever records it has", (_, added, changed) => {
    expect(countEvent(counters, lastOfJanuary, added)).toEqual({
      ...counters,
      events: 21,
      eventsInMonth: 8,
      ...changed,
    });
  });

  test("is the first of its month when it opens it", () => {
    expect(countEvent(counters, firstOfFebruary, [])).toMatchObject({ month: 202602, eventsInMonth: 1, events: 21 });
    expect(countEvent(noEvents, firstOfFebruary, [])).toMatchObject({ month: 202602, eventsInMonth: 1, events: 1 });
  });
});

test.each([
  ["PENDING", 3],
  ["DELIVERED", 15],
  ["FAILED", 2],
  [undefined, 20],
] as const)("records in the state %p: %i", (state, records) => {
  expect(recordsIn(counters, state)).toBe(records);
});

describe("a record that", () => {
  test.each([
    ["PENDING", { pending: 4 }, { pending: 2 }],
    ["DELIVERED", { delivered: 16 }, { delivered: 14 }],
    ["FAILED", { failed: 3 }, { failed: 1 }],
  ] as const)("enters or leaves %s is counted there and nowhere else", (state, entered, left) => {
    expect(enterState(counters, state)).toEqual({ ...counters, ...entered });
    expect(leaveState(counters, state)).toEqual({ ...counters, ...left });
  });

  test.each([
    ["PENDING", "DELIVERED", { pending: 2, delivered: 16 }],
    ["PENDING", "FAILED", { pending: 2, failed: 3 }],
    ["FAILED", "DELIVERED", { failed: 1, delivered: 16 }],
    ["DELIVERED", "PENDING", { delivered: 14, pending: 4 }],
  ] as const)("moves from %s to %s leaves the one and enters the other", (from, to, changed) => {
    expect(moveState(counters, from, to)).toEqual({ ...counters, ...changed });
  });

  test.each(["PENDING", "DELIVERED", "FAILED"] as const)("stays %s leaves nothing to write", (state) => {
    expect(moveState(counters, state, state)).toBe(counters);
  });
});
