import { describe, expect, test } from "bun:test";
import { type LaneQuota, spend, spentOf } from "../../../src/store/postgres/quota.ts";

const month = 202611;
const lane = (slot: number, used: number, granted: number, its = month): LaneQuota => ({
  slot,
  month: its,
  used,
  granted,
});
const spendOf = (lanes: LaneQuota[], events: number, quota = 1_600) => spend(lanes, { slot: 0, events, month, quota });

describe("the quota of a month, over lanes", () => {
  test("is a sixteenth of what is free for whoever comes first, and so on", () => {
    expect(spendOf([], 0)).toEqual([lane(0, 0, 100)]);
    expect(spendOf([lane(0, 100, 100), lane(4, 0, 100)], 10)).toEqual([lane(0, 110, 110 + 86)]);
  });

  test("takes back what others have not spent, in their order, when nothing is free", () => {
    const lanes = [lane(0, 400, 400), lane(4, 300, 500), lane(8, 100, 700)];
    expect(spendOf(lanes, 250)).toEqual([lane(4, 300, 300), lane(8, 100, 650), lane(0, 650, 650)]);
  });

  test("of a lower plan ends what was granted of the higher one", () => {
    expect(spendOf([lane(0, 10, 5_000), lane(4, 20, 5_000)], 1)).toEqual([lane(4, 20, 20), lane(0, 11, 1_580)]);
  });

  test("begins anew with the month, lane by lane", () => {
    const lanes = [lane(0, 900, 900, 202610), lane(4, 16, 16)];
    expect(spentOf(lanes)).toEqual({ month, eventsInMonth: 16 });
    expect(spendOf(lanes, 16)).toEqual([lane(0, 16, 16 + 98)]);
  });

  test("is never granted twice, whatever comes in which order", () => {
    const quota = 1_000;
    let lanes: LaneQuota[] = [];
    for (let left = quota, turn = 0; left > 0; turn++) {
      const events = Math.min(left, 1 + ((turn * 7) % 60));
      const changed = spend(lanes, { slot: (turn * 5) % 4, events, month, quota });
      lanes = [...lanes.filter(({ slot }) => !changed.some((one) => one.slot === slot)), ...changed];
      left -= events;
      expect(lanes.reduce((sum, { granted }) => sum + granted, 0)).toBeLessThanOrEqual(quota);
      for (const { used, granted } of lanes) expect(used).toBeLessThanOrEqual(granted);
    }
    expect(spentOf(lanes).eventsInMonth).toBe(quota);
  });
});
