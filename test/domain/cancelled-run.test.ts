import { describe, expect, test } from "bun:test";
import {
  beforeRun as beforeItsRun,
  beforeOf,
  beforeText,
  type RecordBefore,
  type RecordNow,
  returned,
} from "../../src/domain/cancelled-run.ts";

const failed: RecordNow = {
  state: "FAILED",
  attemptsInRun: 3,
  nextAttemptAt: null,
  errorReason: "HTTP 404 from https://a.example",
  errorCode: "http_status",
  statusCode: 404,
  failureKey: 5,
  replayKey: 7,
  finishedAt: 2_000,
  before: null,
};
const waiting: RecordNow = { ...failed, state: "PENDING", nextAttemptAt: 9_000, replayKey: null, finishedAt: null };
const replayedAt = 3_000;
const beforeRun = (record: RecordNow) => beforeItsRun(record, { orderedNow: replayedAt });

describe("what a record was before a replay", () => {
  test("is what it is, with the replay that had begun its run", () => {
    const { before: _, ...known } = failed;
    expect(beforeRun(failed)).toEqual({ ...known, replayedAt });
  });

  test("is where it was in the run that its event began", () => {
    const { before: _, ...known } = waiting;
    expect(beforeRun(waiting)).toEqual({ ...known, replayedAt });
  });

  test("is what it was before another replay, if it waits for that", () => {
    const before = beforeRun(failed);
    expect(beforeRun({ ...waiting, replayKey: 8, before })).toEqual(before);
  });

  test("is a run of nobody, if an earlier program had queued it for a replay", () => {
    expect(beforeRun({ ...waiting, replayKey: 8 })).toMatchObject({ state: "PENDING", replayKey: null });
  });

  test.each([[{ state: "NONE" }], [beforeRun(failed)]] as [RecordBefore][])("is kept as a text: %j", (before) => {
    expect(beforeOf(beforeText(before))).toEqual(before);
    expect(beforeOf(null)).toBeNull();
  });
});

describe("a record whose run was cancelled while it waited", () => {
  const now = 5_000;
  const moment = { now, orderedNow: now, failedAskedAt: null };
  const due = { isHeldBack: false, lastAttemptAt: 2_900 };
  test.each([
    ["DELIVERED", 2_000, null],
    ["FAILED", 2_000, null],
    ["PENDING", null, 9_000],
  ] as const)("is %s again; it ended at %p, and is due at %p", (state, finishedAt, nextAttemptAt) => {
    const before = beforeRun(state === "PENDING" ? waiting : { ...failed, state });
    expect(returned(before, due, moment)).toMatchObject({ ...before, state, finishedAt, nextAttemptAt });
  });

  test.each([
    [2_000, "before that run", 2_500],
    [2_000, "as that run began", replayedAt],
    [now, "while it waited", 3_500],
  ])("has ended at %i, if the first replay of what has failed was asked for %s", (finishedAt, _, failedAskedAt) => {
    expect(returned(beforeRun(failed), due, { ...moment, failedAskedAt })).toMatchObject({ finishedAt });
  });

  test.each([
    ["as it ended", failed, { finishedAt: 2_000 }, 2_900, 2_000],
    [
      "with its latest attempt, if an earlier program has kept what it was",
      failed,
      { finishedAt: undefined },
      2_900,
      2_900,
    ],
    ["now, if it was never attempted either", failed, { finishedAt: undefined }, null, now],
    ["with its latest attempt, if it waits", waiting, {}, 2_900, 2_900],
  ])("has failed %s", (_, record, kept, lastAttemptAt, failedAt) => {
    const before = { ...beforeRun(record), ...kept } as RecordBefore;
    expect(returned(before, { ...due, lastAttemptAt }, moment)).toMatchObject({ failedAt });
  });

  test("has ended now, if an earlier program has kept what it was", () => {
    const { finishedAt: _, replayedAt: __, ...kept } = beforeRun(failed) as RecordNow & { replayedAt: number };
    expect(returned(kept, due, { ...moment, failedAskedAt: 2_500 })).toMatchObject({ finishedAt: now });
  });

  test.each([
    ["keeps its time", 9_000, false, 9_000],
    ["is held back now, whatever its time was", 9_000, true, null],
    ["is still held back", null, true, null],
    ["is due at once, if it was held back and is not any more", null, false, now],
  ])("waits as its line has it: it %s", (_, nextAttemptAt, isHeldBack, isDueAt) => {
    const before = beforeRun({ ...waiting, nextAttemptAt });
    expect(returned(before, { ...due, isHeldBack }, moment)).toMatchObject({
      state: "PENDING",
      nextAttemptAt: isDueAt,
    });
  });

  test("goes, if there was none", () => {
    expect(returned({ state: "NONE" }, due, moment)).toBeNull();
  });
});
