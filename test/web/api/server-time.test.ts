import { afterEach, describe, expect, setSystemTime, test } from "bun:test";
import { noteServerTime, serverNow } from "../../../web/api/server-time.ts";

const now = Date.UTC(2026, 10, 21, 13, 2, 11, 482);
const header = (ms: number) => new Date(ms).toUTCString();

afterEach(() => {
  noteServerTime(header(Date.now()));
  setSystemTime();
});

describe("the time by the server's clock", () => {
  test("is the machine's own where they agree to the second, and is not cut to it", () => {
    setSystemTime(now);
    for (const ahead of [0, -1000, 2000]) {
      noteServerTime(header(now + ahead));
      expect(serverNow()).toBe(now);
    }
  });

  test.each([-70, 3, 24 * 60])("is the server's where the machine is %d min off", (minutes) => {
    setSystemTime(now);
    const there = now + minutes * 60_000;
    noteServerTime(header(there));
    expect(Math.abs(serverNow() - there)).toBeLessThan(1000);
    setSystemTime(now + 5000);
    expect(Math.abs(serverNow() - there - 5000)).toBeLessThan(1000);
  });

  test("is the machine's own again when its clock was set", () => {
    setSystemTime(now);
    noteServerTime(header(now + 3_600_000));
    setSystemTime(now + 3_600_000);
    noteServerTime(header(now + 3_600_000));
    expect(serverNow()).toBe(now + 3_600_000);
  });

  test("stays what it was when an answer has no date", () => {
    setSystemTime(now);
    noteServerTime(header(now + 3_600_000));
    const before = serverNow();
    noteServerTime(null);
    noteServerTime("soon");
    expect(serverNow()).toBe(before);
  });
});
