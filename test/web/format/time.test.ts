import { afterEach, describe, expect, test } from "bun:test";
import { duration, exactTime, exactTimeWithZone, relativeTime } from "../../../web/format/time.ts";
import { isUtc } from "../../../web/format/zone.ts";

const now = Date.UTC(2026, 10, 21, 13, 2, 11, 482);
const second = 1000;
const minute = 60 * second;
const hour = 60 * minute;
const day = 24 * hour;

/** The zone of whoever looks at the page. */
const ownZone = process.env.TZ;
afterEach(() => {
  setZone(ownZone);
});

function setZone(zone: string | undefined): void {
  if (zone === undefined) delete process.env.TZ;
  else process.env.TZ = zone;
}

describe("relativeTime", () => {
  test.each([
    [0, "now"],
    [999, "now"],
    [second, "1 s ago"],
    [12.9 * second, "12 s ago"],
    [minute - 1, "59 s ago"],
    [4 * minute, "4 min ago"],
    [hour - 1, "59 min ago"],
    [2 * hour, "2 h ago"],
    [day - 1, "23 h ago"],
    [3 * day, "3 d ago"],
    [30 * day, "30 d ago"],
  ])("%p ms before is %p", (ms, text) => {
    expect(relativeTime(now - ms, now)).toBe(text);
  });

  test.each([
    [999, "now"],
    [40 * second, "in 40 s"],
    [4 * minute + 59 * second, "in 4 min"],
    [10 * hour, "in 10 h"],
    [30 * day, "in 30 d"],
  ])("%p ms ahead is %p", (ms, text) => {
    expect(relativeTime(now + ms, now)).toBe(text);
  });

  test("beyond 30 days it is the date, on both sides", () => {
    setZone("UTC");
    expect(relativeTime(now - 30 * day - 1, now)).toBe("2026-10-22");
    expect(relativeTime(now + 31 * day, now)).toBe("2026-12-22");
  });
});

describe("exactTime", () => {
  test.each([
    ["UTC", "2026-11-21 13:02:11.482", "2026-11-21 13:02:11.482 UTC"],
    ["Africa/Lagos", "2026-11-21 14:02:11.482", "2026-11-21 14:02:11.482 UTC+1"],
    ["Asia/Kathmandu", "2026-11-21 18:47:11.482", "2026-11-21 18:47:11.482 UTC+5:45"],
    ["America/St_Johns", "2026-11-21 09:32:11.482", "2026-11-21 09:32:11.482 UTC-3:30"],
    ["Pacific/Kiritimati", "2026-11-22 03:02:11.482", "2026-11-22 03:02:11.482 UTC+14"],
  ])("in %s is %s", (zone, local, withZone) => {
    setZone(zone);
    expect(exactTime(now)).toBe(local);
    expect(exactTimeWithZone(now)).toBe(withZone);
  });

  test("is in UTC everywhere for whoever wants it", () => {
    setZone("Asia/Kathmandu");
    isUtc.value = true;
    expect(exactTimeWithZone(now)).toBe("2026-11-21 13:02:11.482 UTC");
    isUtc.value = false;
  });

  test("has all its zeros", () => {
    setZone("UTC");
    expect(exactTime(Date.UTC(2026, 0, 2, 3, 4, 5, 6))).toBe("2026-01-02 03:04:05.006");
  });
});

describe("duration", () => {
  test.each([
    [0, "< 1 ms"],
    [0.5, "0.5 ms"],
    [9.96, "10 ms"],
    [41, "41 ms"],
    [41.4, "41 ms"],
    [999, "999 ms"],
    [999.6, "1 s"],
    [1000, "1 s"],
    [1234, "1.2 s"],
    [9_960, "10 s"],
    [10_000, "10 s"],
    [59_499, "59 s"],
    [59_500, "1 min"],
    [245 * second, "4 min 5 s"],
    [5 * minute, "5 min"],
    [2 * hour, "2 h"],
    [2 * hour + 5 * minute + 59 * second, "2 h 5 min"],
    [76 * hour, "3 d 4 h"],
  ])("%p ms are %p", (ms, text) => {
    expect(duration(ms)).toBe(text);
  });
});
