import { describe, expect, test } from "bun:test";
import type { Replay, Webhook } from "../../../../web/api/types.ts";
import { isEnough, latestSize, sizeToFollow, underWay } from "../../../../web/pages/replays/latest.ts";
import { aheadOf } from "../../../../web/parts/replay-groups.ts";

const replayOf = (id: string, given: Partial<Replay> = {}): Replay => ({
  ...{ id, kind: "failed", replayGroupId: id, status: "completed", selected: 1, queued: 1, delivered: 0, failed: 0 },
  ...{ superseded: 0, skipped: 0, createdAt: "2026-03-01T12:34:56.789Z", completedAt: null },
  ...given,
});
const running = (id: string, given: Partial<Replay> = {}) => replayOf(id, { status: "running", ...given });
const waiting = (id: string) => replayOf(id, { status: "waiting" });
const ended = (n: number) => Array.from({ length: n }, (_, i) => replayOf(`ended-${i}`));
const oneByOne = { kind: "single", replayGroupId: "again" };

describe("under way", () => {
  const shop: Webhook = { id: "wh_shop", url: "https://shop.example/hook", name: "" };
  test.each([
    ["is what runs or waits", [running("2"), replayOf("1"), running("0", { status: "waiting" })], [], ["2", "0"]],
    ["is not what was started here", [running("2"), running("1")], ["2"], ["1"]],
    ["is a group as long as one of it is, and whole", [running("2", oneByOne), replayOf("1", oneByOne)], [], ["2 1"]],
    ["is no group that has ended", [replayOf("2", oneByOne), replayOf("1", oneByOne)], [], []],
    ["is nothing for another webhook", [running("2", { filter: { webhook: "wh_other" } }), running("1")], [], ["1"]],
  ])("%s", (_, replays, startedHere, expected) => {
    const groups = underWay(replays, startedHere, shop);
    expect(groups.map((group) => group.map(({ id }) => id).join(" "))).toEqual(expected);
  });
});

describe("of the latest replays", () => {
  test.each([
    ["all, as long as nothing is known of them", null, [], latestSize],
    ["few where none is followed", ended(100), [], 20],
    ["few where the newest is", [running("2"), ...ended(99)], ["2"], 21],
    ["all up to the oldest that is", [running("2"), ...ended(30), running("1"), ...ended(9)], ["2", "1"], 52],
    ["never more than are read at first", [...ended(99), running("1")], ["1"], latestSize],
  ])("are read: %s", (_, replays, followed, size) => {
    expect(sizeToFollow(replays, new Set(followed))).toBe(size);
  });

  test.each([
    ["all that there are", { replays: [running("1")], total: 1 }, ["1"], true],
    ["what is followed, and the end of what is new", { replays: [running("1"), ...ended(20)], total: 90 }, ["1"], true],
    ["less than what is followed", { replays: ended(21), total: 90 }, ["1"], false],
    ["nothing but new ones", { replays: [replayOf("3"), running("2")], total: 90 }, [], false],
    ["as many as are ever read", { replays: Array.from({ length: 100 }, () => running("2")), total: 900 }, ["1"], true],
  ])("%s is enough, or not", (_, page, followed, expected) => {
    expect(isEnough(page, new Set(followed))).toBe(expected);
  });
});

test.each<[string, Replay, Replay[], string | undefined]>([
  ["for the one that runs", waiting("2"), [waiting("3"), waiting("2"), running("1")], "1"],
  ["for no single event", waiting("2"), [waiting("2"), running("1", oneByOne)], undefined],
  ["for none that has ended", waiting("2"), [waiting("2"), replayOf("1")], undefined],
  ["for none once it runs", running("2"), [running("2"), running("1")], undefined],
])("a replay waits %s", (_, replay, replays, id) => {
  expect(aheadOf(replay, replays)?.id).toBe(id);
});
