import { describe, expect, test } from "bun:test";
import {
  advance,
  cancel,
  isCompleted,
  previewOf,
  type ReplayPhase,
  selectionOf,
  startBulkReplay,
  startSingleReplay,
  statusOfPhase,
} from "../../src/domain/replay-phase.ts";
import { firstSeqAt } from "../../src/lib/id.ts";

const now = 1_000_000_000;
const dayMs = 86_400_000;
const moment = { now, orderedNow: now };
const limits = { unfinished: 11, perDay: null };
const none = { unfinished: 0, nthLastBegunAt: null };

describe("a bulk replay that is asked for (rules, section 3)", () => {
  test.each<[string, string | undefined, { gone?: boolean; mayGrow?: boolean } & Partial<typeof none>]>([
    ["waits for its turn", undefined, {}],
    ["waits beside ten others", undefined, { unfinished: 10 }],
    ["is refused beside eleven", "too_many_replays", { unfinished: 11 }],
    ["is refused on a full disk", "storage_full", { mayGrow: false }],
    ["is told first that there are too many", "too_many_replays", { unfinished: 11, mayGrow: false }],
    ["of a deleted account is refused whatever else", "account_gone", { gone: true, unfinished: 11, mayGrow: false }],
  ])("%s", (_, code, { gone = false, mayGrow = true, ...given }) => {
    const start = startBulkReplay({ gone }, { ...none, ...given }, limits, mayGrow, moment);
    expect(start.kind === "refused" ? start.error.code : undefined).toBe(code as string);
  });

  test.each<[string, number | null, number | null, number | undefined]>([
    ["fewer have begun", 3, null, undefined],
    ["the third last began a day ago", 3, now - dayMs, undefined],
    ["the third last began just less than a day ago", 3, now - dayMs + 1_000, 1],
    ["the third last began now", 3, now, 86_400],
    ["any number may", null, null, undefined],
  ])("when %s, of %p a day, it waits as long as it must", (_, perDay, nthLastBegunAt, retryAfterSeconds) => {
    const start = startBulkReplay(
      { gone: false },
      { ...none, nthLastBegunAt },
      { unfinished: 11, perDay },
      true,
      moment,
    );
    const error = start.kind === "refused" ? start.error : undefined;
    expect<unknown>([error?.code, error?.retryAfterSeconds]).toEqual([
      retryAfterSeconds && "too_many_replays_today",
      retryAfterSeconds,
    ]);
  });

  test.each([
    ["at its own time", now, now, now],
    ["after all that has failed so far, when the clock has stepped back since", now, now + 500, now + 500],
  ])("begins %s", (_, wallClock, orderedNow, createdAt) => {
    const start = startBulkReplay({ gone: false }, none, limits, true, { now: wallClock, orderedNow });
    expect(start).toEqual({ kind: "waiting", createdAt });
  });
});

describe("the replay of one event", () => {
  test.each<[string, boolean, number | null, boolean, string]>([
    ["of a deleted account", true, null, false, "account_gone"],
    ["that the account does not have", false, null, false, "event_not_found"],
    ["on a full disk", false, 7, false, "storage_full"],
  ])("%s is refused", (_, gone, seq, mayGrow, code) => {
    const event = seq === null ? null : { seq, isSelected: true, payloadErased: false };
    expect(startSingleReplay({ gone }, event, mayGrow)).toMatchObject({ kind: "refused", error: { code } });
  });

  test("that its filter does not take is refused", () => {
    const start = startSingleReplay({ gone: false }, { seq: 7, isSelected: false, payloadErased: true }, true);
    expect(start).toMatchObject({ kind: "refused", error: { kind: "not_found", code: "event_not_selected" } });
  });

  test("whose payload was erased is refused", () => {
    const start = startSingleReplay({ gone: false }, { seq: 7, isSelected: true, payloadErased: true }, true);
    expect(start).toMatchObject({ kind: "refused", error: { kind: "invalid", code: "payload_erased" } });
  });

  test("is queued at once", () => {
    expect(startSingleReplay({ gone: false }, { seq: 7, isSelected: true, payloadErased: false }, true)).toEqual({
      kind: "queued",
      eventSeq: 7,
    });
  });
});

test.each([
  ["that there is not", null, [0, 0]],
  ["that its filter does not take", { isSelected: false, payloadErased: true }, [0, 0]],
  ["that can be replayed", { isSelected: true, payloadErased: false }, [1, 0]],
  ["whose payload was erased", { isSelected: true, payloadErased: true }, [1, 1]],
])("a preview of an event %s", (_, event, [selected, payloadsErased]) => {
  expect<unknown>(previewOf(event)).toEqual({ selected, payloadsErased });
});

describe("the events that a bulk replay looks at", () => {
  const last = firstSeqAt(5_000) + 3;
  test.each([
    ["are all, up to the last one", {}, { fromSeq: 0, toSeq: last }],
    ["begin with the first of a millisecond", { from: 4_000 }, { fromSeq: firstSeqAt(4_000), toSeq: last }],
    ["end with the last of a millisecond", { to: 4_000 }, { fromSeq: 0, toSeq: firstSeqAt(4_001) - 1 }],
    ["never come later than the replay", { from: 4_000, to: 9_000 }, { fromSeq: firstSeqAt(4_000), toSeq: last }],
  ])("%s", (_, times, selection) => {
    expect(selectionOf(times, {}, last)).toEqual(selection);
    expect(selectionOf({}, times, last)).toEqual(selection);
  });

  test("lie in the range of a time line and in that of its filter", () => {
    const selection = { fromSeq: firstSeqAt(2_000), toSeq: firstSeqAt(3_001) - 1 };
    expect(selectionOf({ from: 2_000, to: 4_000 }, { from: 1_000, to: 3_000 }, last)).toEqual(selection);
    expect(selectionOf({ from: 1_000, to: 3_000 }, { from: 2_000, to: 4_000 }, last)).toEqual(selection);
  });
});

describe("a replay whose turn it is", () => {
  test.each<[string, number[], number, ReplayPhase, number]>([
    ["goes on while there may be more", [4, 5, 6], 3, "queueing", 6],
    ["is queued when fewer are left than it asked for", [4, 5], 3, "queued", 99],
    ["is queued when none is left", [], 3, "queued", 99],
  ])("%s", (_, events, asked, phase, cursorSeq) => {
    expect(advance(events, asked, 99)).toEqual({ phase, cursorSeq, completedAt: null });
  });

  test.each<[string, number[], ReplayPhase, number]>([
    ["goes on behind the last event that it looked at", [4], "queueing", 50],
    ["goes on behind the last event that it takes", [4, 5, 6], "queueing", 6],
  ])("and whose filter takes few %s", (_, events, phase, cursorSeq) => {
    expect(advance(events, 3, 99, 50)).toEqual({ phase, cursorSeq, completedAt: null });
  });
});

describe("a replay that is", () => {
  test.each<[ReplayPhase, string, boolean]>([
    ["waiting", "waiting", true],
    ["queueing", "running", true],
    ["queued", "running", true],
    ["completed", "completed", false],
    ["cancelled", "cancelled", false],
  ])("%s is shown as %s, and can be cancelled: %p", (phase, status, canBeCancelled) => {
    expect(statusOfPhase[phase]).toBe(status as never);
    const place = canBeCancelled
      ? { phase: "cancelled", cursorSeq: 6, completedAt: now, hasRuns: phase !== "waiting" }
      : null;
    expect<unknown>(cancel({ phase, cursorSeq: 6 }, now)).toEqual(place);
  });

  test.each<[ReplayPhase, number, number, number, number, boolean]>([
    ["queued", 3, 1, 1, 1, true],
    ["queued", 3, 3, 0, 0, true],
    ["queued", 3, 1, 1, 0, false],
    ["queued", 0, 0, 0, 0, true],
    ["queueing", 3, 1, 1, 1, false],
    ["cancelled", 3, 1, 1, 1, false],
    ["completed", 3, 1, 1, 1, false],
  ])(
    "%s, of %i records %i delivered, %i failed, %i superseded, is over: %p",
    (phase, queued, delivered, failed, superseded, over) => {
      expect(isCompleted({ phase, queued, delivered, failed, superseded })).toBe(over);
    },
  );
});
