import { describe, expect, test } from "bun:test";
import type { Replay } from "../../../web/api/types.ts";
import { groupsOf, groupsOn, leftOf, mayGoOn, sumOf, withChanged } from "../../../web/parts/replay-groups.ts";

const single = (given: Partial<Replay>): Replay => ({
  ...{ id: "rpl_1", kind: "single", replayGroupId: "again", status: "completed", selected: 1, queued: 1 },
  ...{ delivered: 0, failed: 0, superseded: 0, skipped: 0, createdAt: "2026-03-01T12:34:56.789Z", completedAt: null },
  ...given,
});

test("replays of one event each under one label are a group, if they follow each other", () => {
  const one = (id: string, replayGroupId: string, kind = "single") => single({ id, replayGroupId, kind });
  const groups = groupsOf([
    ...[one("6", "again"), one("5", "again"), one("4", "again", "failed"), one("3", "again", "failed")],
    ...[one("2", "again"), one("1", "first"), one("0", "first")],
  ]);
  expect(groups.map((group) => group.map(({ id }) => id))).toEqual([["6", "5"], ["4"], ["3"], ["2"], ["1", "0"]]);
  expect(groupsOf([])).toEqual([]);
});

describe("a group that goes on beside its page", () => {
  const named = (replayGroupId: string, ...ids: string[]) => ids.map((id) => single({ id, replayGroupId }));
  const isAllOf = { newer: true, older: true };
  const idsOf = (groups: ReturnType<typeof groupsOn>) => groups.map((group) => group.map(({ id }) => id).join(" "));

  test.each([
    ["fits on it", [], [...named("b", "4", "3"), ...named("a", "2")], [], ["4 3", "2"]],
    ["begins before it", named("b", "6", "5"), [...named("b", "4"), ...named("a", "3")], [], ["6 5 4", "3"]],
    ["ends after it", [], named("b", "4", "3"), [...named("b", "2"), ...named("a", "1")], ["4 3 2"]],
    ["fills it and more", named("b", "5"), named("b", "4", "3"), named("b", "2"), ["5 4 3 2"]],
    ["moved on between the reads", [], named("b", "4", "3"), named("b", "3", "2"), ["4 3 2"]],
  ])("is whole if it %s", (_, newer, replays, older, expected) => {
    expect(idsOf(groupsOn({ newer, replays, older, isAllOf }))).toEqual(expected);
  });

  test.each([
    ["an older page is left", named("b", "2", "1"), { newer: true, older: false }, true],
    ["the list ends there", named("b", "2", "1"), { newer: true, older: true }, false],
    ["another one follows", [...named("b", "2"), ...named("a", "1")], { newer: true, older: false }, false],
    ["nothing had to be read beside it", [], { newer: false, older: false }, false],
  ])("may go on, or not, where %s", (_, older, isAllOf, expected) => {
    const around = { newer: [], replays: named("b", "4", "3"), older, isAllOf };
    const [group] = groupsOn(around);
    expect(group && mayGoOn(group, around)).toBe(expected);
  });
});

test.each<[string, Partial<Replay>, number]>([
  ["once all are queued", { selected: 5, queued: 4, skipped: 1, delivered: 1, failed: 1 }, 2],
  ["where an event has several", { selected: 1, queued: 3 }, 3],
  ["but not while events are still to be queued", { selected: 5_000, queued: 100, delivered: 20 }, 0],
])("how many deliveries are left is known %s", (_, replay, left) => {
  expect(leftOf(single(replay))).toBe(left);
});

test("some of a list change in their places", () => {
  const [first, second] = [single({ id: "1" }), single({ id: "2" })];
  const cancelled = single({ id: "2", status: "cancelled" });
  expect(withChanged([first, second], [cancelled, single({ id: "3" })])).toEqual([first, cancelled]);
});

describe("replays of one delivery each, as one", () => {
  test("count what became of all of them", () => {
    const replays = [single({ delivered: 1 }), single({ failed: 1 }), single({ queued: 0, skipped: 1 })] as const;
    expect(sumOf(replays, "Listed deliveries")).toMatchObject({
      ...{ kind: "Listed deliveries", replayGroupId: "again", status: "completed" },
      ...{ selected: 3, queued: 2, delivered: 1, failed: 1, skipped: 1, returned: 0 },
    });
  });

  test.each([
    ["running", ["completed", "running", "cancelled"]],
    ["cancelled", ["completed", "cancelled"]],
    ["completed", ["completed", "completed"]],
  ])("are %s when they are %p", (status, [first = "", ...others]) => {
    const replays = [single({ status: first }), ...others.map((each) => single({ status: each }))] as const;
    expect(sumOf(replays, "")).toMatchObject({ status });
  });
});
