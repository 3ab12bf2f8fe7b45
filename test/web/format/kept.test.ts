import { describe, expect, test } from "bun:test";
import { erasedInWords, keptInWords, sendableOf } from "../../../web/format/kept.ts";

const day = 86_400;

describe("how long events are kept, in words", () => {
  test.each<[number | null, number | null, string, boolean?]>([
    [null, null, "Events are kept until room runs short.", true],
    [30 * day, 7 * day, "Events are kept for 30 days, or until room runs short, their payloads for 7 days.", true],
    [null, null, "Events are kept for ever."],
    [30 * day, 30 * day, "Events are kept for 30 days."],
    [30 * day, 1 * day, "Events are kept for 30 days, their payloads for 1 day."],
    [null, 36 * 3_600, "Events are kept for ever, their payloads for 36 hours."],
    [3_600, 3_600, "Events are kept for 1 hour."],
  ])("%p and %p: %s", (retention_seconds, retention_payloads_seconds, words, retention_by_size = false) => {
    expect(keptInWords({ retention_seconds, retention_payloads_seconds, retention_by_size })).toBe(words);
  });
});

describe("what can be replayed of a selection, in words", () => {
  test.each([
    [{ selected: 400 }, 400, ""],
    [{ selected: 400, payloadsErased: 88 }, 312, "312 of 400 can be replayed; 88 payloads were erased. "],
    [{ selected: 1, payloadsErased: 1 }, 0, "0 of 1 can be replayed; 1 payload was erased. "],
  ])("%j", (preview, sendable, words) => {
    expect(sendableOf(preview)).toBe(sendable);
    expect(erasedInWords(preview)).toBe(words);
  });
});
