import { describe, expect, test } from "bun:test";
import {
  beforeOf,
  beforeRun,
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
  before: null,
};
const waiting: RecordNow = { ...failed, state: "PENDING", nextAttemptAt: 9_000, replayKey: null };

describe("what a record was before a replay", () => {
  test("is what it is, with the replay that had begun its run", () => {
    const { before: _, ...known } = failed;
    expect(beforeRun(failed)).toEqual(known);
  });

  test("is where it was in the run that its event began", () => {
    const { before: _, ...known } = waiting;
    expect(beforeRun(waiting)).toEqual(known);
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
  const moment = { now, orderedNow: now };
  const due = { isHeldBack: false };
  test.each([
    ["DELIVERED", now, null],
    ["FAILED", now, null],
    ["PENDING", null, 9_000],
  ] as const)("is %s again; it ended at %p, and is due at %p", (state, finishedAt, nextAttemptAt) => {
    const before = beforeRun({ ...(state === "PENDING" ? waiting : failed), state });
    expect(returned(before, due, moment)).toEqual({ ...(before as RecordNow), state, finishedAt, nextAttemptAt });
  });

  test.each([
    ["keeps its time", 9_000, false, 9_000],
    ["is held back now, whatever its time was", 9_000, true, null],
    ["is still held back", null, true, null],
    ["is due at once, if it was held back and is not any more", null, false, now],
  ])("waits as its line has it: it %s", (_, nextAttemptAt, isHeldBack, isDueAt) => {
    const before = beforeRun({ ...waiting, nextAttemptAt });
    expect(returned(before, { isHeldBack }, moment)).toMatchObject({ state: "PENDING", nextAttemptAt: isDueAt });
  });

  test("goes, if there was none", () => {
    expect(returned({ state: "NONE" }, due, moment)).toBeNull();
  });
});
