import { afterAll, describe, expect, test } from "bun:test";
import { createRetryPolicy, parseRetryAfter } from "../../src/delivery/retry.ts";
import { refusedWith } from "../../src/domain/failure.ts";

const now = Date.UTC(2026, 0, 15, 12);
const url = "https://shop.example/hook";
const retryable = { kind: "retryable", failure: refusedWith(503, url) } as const;
const inTheMiddle = () => 0.5;

describe("the retry policy (rules, section 8)", () => {
  const policy = createRetryPolicy([5000, 300_000], inTheMiddle);

  test("an acknowledged attempt ends the run", () => {
    expect(policy.after({ kind: "acknowledged" }, 1, now)).toEqual({ kind: "delivered" });
  });

  test("a permanent failure ends the run", () => {
    expect(policy.after({ kind: "permanent", failure: refusedWith(400, url) }, 1, now)).toEqual({ kind: "failed" });
  });

  test.each([
    [1, { kind: "retry", at: now + 5000 }],
    [2, { kind: "retry", at: now + 300_000 }],
    [3, { kind: "failed" }],
  ] as const)("two pauses make three attempts: after attempt %i comes %p", (attempts, expected) => {
    expect(policy.after(retryable, attempts, now)).toEqual(expected);
  });

  test.each([
    [0, 4000],
    [0.25, 4500],
    [1, 6000],
  ])("a random %p makes 5 s into %i ms: a fifth less to a fifth more", (random, pauseMs) => {
    expect(createRetryPolicy([5000], () => random).after(retryable, 1, now)).toEqual({
      kind: "retry",
      at: now + pauseMs,
    });
  });

  test.each([
    ["60", 60_000],
    ["2", 5000],
    ["0", 5000],
    ["999999999", 86_400_000],
    [new Date(now + 90_000).toUTCString(), 90_000],
    [new Date(now - 90_000).toUTCString(), 5000],
    ["soon", 5000],
    ["-5", 5000],
    ["1.5", 5000],
  ])("Retry-After %p postpones to %i ms from now: later, never earlier, a day at most", (retryAfter, pauseMs) => {
    expect(policy.after({ ...retryable, retryAfter }, 1, now)).toEqual({ kind: "retry", at: now + pauseMs });
  });
});

describe("parseRetryAfter", () => {
  const { TZ } = process.env;
  afterAll(() => {
    if (TZ === undefined) delete process.env.TZ;
    else process.env.TZ = TZ;
  });

  test.each(["UTC", "America/New_York", "Asia/Kolkata"])("reads each form of date as UTC on a server in %s", (zone) => {
    process.env.TZ = zone;
    const forms = [
      "Thu, 15 Jan 2026 13:00:00 GMT",
      "Thursday, 15-Jan-26 13:00:00 GMT",
      "Thu Jan 15 13:00:00 2026",
      "Thu, 15 Jan 2026 13:00:00",
      "Thu, 15 Jan 2026 15:00:00 +0200",
    ];
    expect(forms.map((form) => parseRetryAfter(form, now))).toEqual(forms.map(() => now + 3_600_000));
  });

  test.each(["", "tomorrow", "12 s", "2026-01-15", "NaN"])("%p is neither seconds nor a date", (text) => {
    expect(parseRetryAfter(text, now)).toBeNull();
  });
});
