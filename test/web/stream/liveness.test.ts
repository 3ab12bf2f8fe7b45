import { describe, expect, test } from "bun:test";
import { isLost, type Look, lookEveryMs } from "../../../web/stream/liveness.ts";

const second = 1000;
const now = 1_772_368_496_789;

/** A connection that was heard and looked at lately, in a tab that is watched; `ago` in ms. */
const look = ({ heard = second, looked = lookEveryMs, ...rest }: Partial<Look> & { heard?: number; looked?: number }) =>
  isLost({
    isOpen: true,
    now,
    heardAt: now - heard,
    lookedAt: now - looked,
    isComing: false,
    isWatched: true,
    ...rest,
  });

describe("a connection is lost", () => {
  test("when two of the server's comments, one every 15 s, are missing", () => {
    expect(look({ heard: 31 * second })).toBe(false);
    expect(look({ heard: 33 * second })).toBe(true);
    expect(look({ heard: 33 * second, isWatched: false })).toBe(true);
  });

  test("when it is not answered for 10 s", () => {
    expect(look({ heard: 9 * second, isOpen: false })).toBe(false);
    expect(look({ heard: 11 * second, isOpen: false })).toBe(true);
    expect(look({ heard: 11 * second })).toBe(false);
  });

  test("when one is missing as the tab comes into view", () => {
    expect(look({ heard: 16 * second, isComing: true, isWatched: false })).toBe(false);
    expect(look({ heard: 18 * second, isComing: true, isWatched: false })).toBe(true);
    expect(look({ heard: 18 * second })).toBe(false);
  });

  test("when the machine slept, even if something was heard just now: it may have waited since before", () => {
    expect(look({ looked: 60 * second, heard: 0 })).toBe(true);
  });

  test("but not when a look came late, or when the tab was hidden, where timers wait", () => {
    expect(look({ looked: 14 * second, heard: 0 })).toBe(false);
    expect(look({ looked: 60 * second, heard: 0, isWatched: false })).toBe(false);
  });

  test("but not when the clock was set back", () => {
    expect(look({ heard: -3600 * second, looked: -3600 * second })).toBe(false);
  });
});
