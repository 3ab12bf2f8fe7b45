import { afterEach, beforeEach, describe, expect, jest, test } from "bun:test";
import { endsDeliveries, followUntoldEnds } from "../../../web/stream/untold-ends.ts";

interface Message {
  readonly kind: string;
  data(): Record<string, unknown>;
}

const message = (kind: string, news: Record<string, unknown>): Message => ({ kind, data: () => news });

test.each([
  ["account.changed", { changed: "webhooks" }, true],
  ["account.changed", { changed: "inbox" }, false],
  ["webhook.changed", { state: "disabled" }, true],
  ["webhook.changed", { state: "active" }, false],
  ["replay.progressed", { status: "cancelled" }, true],
  ["replay.progressed", { status: "running" }, false],
  ["resync", {}, true],
] as const)("deliveries end by %s with %j: %p", (kind, news, ends) => {
  expect(endsDeliveries(message(kind, news))).toBe(ends);
});

test("of what comes by the thousand nothing is parsed", () => {
  const unread = () => {
    throw new Error("parsed");
  };
  expect(endsDeliveries({ kind: "delivery.attempted", data: unread })).toBe(false);
});

describe("pages look again", () => {
  beforeEach(() => void jest.useFakeTimers());
  afterEach(() => void jest.useRealTimers());

  const removal = message("account.changed", { changed: "webhooks" });

  /** Advances by a second at a time. @param arrive what arrives before the nth @returns the seconds in which pages are told */
  function follow(seconds: number, arrive: (second: number) => readonly Message[]): number[] {
    let hear: (messages: readonly Message[]) => void = () => {};
    const told: number[] = [];
    let now = 0;
    followUntoldEnds(
      (listen) => {
        hear = listen;
      },
      () => told.push(now),
    );
    while (now < seconds) {
      hear(arrive(now));
      now += 1;
      jest.advanceTimersByTime(1_000);
    }
    return told;
  }

  test("ever less often after what ends deliveries, and one day no more", () => {
    const told = follow(3_000, (second) => (second === 0 ? [removal] : []));
    expect(told).toEqual([1, 3, 7, 15, 31, 63, 127, 255, 511, 1023]);
  });

  test("from the start when more ends", () => {
    expect(follow(20, (second) => (second === 0 || second === 9 ? [removal] : []))).toEqual([1, 3, 7, 10, 12, 16]);
  });

  test("also while more and more ends", () => {
    expect(follow(4, () => [removal, removal])).toEqual([1, 2, 3, 4]);
  });
});
