import { describe, expect, test } from "bun:test";
import type { Inbox } from "../../../../web/api/types.ts";
import { mergeInbox } from "../../../../web/pages/inbox/merge.ts";

const delivery = (n: number): Inbox["deliveries"][number] => ({
  id: `ibx_${n}`,
  receivedAt: "2026-03-01T12:34:56.789Z",
  eventId: `evt_${n}`,
  headers: {},
  body: "{}",
  answeredStatus: 204,
  isTest: false,
});

const inbox = (ns: readonly number[], total = ns.length, status = 204): Inbox => ({
  url: "http://localhost:8080/inbox/x",
  answer: { status, delay_ms: 0, silent: false },
  deliveries: ns.map(delivery),
  total,
});

describe("what has come since the inbox was read", () => {
  test.each([
    ["nothing", inbox([2, 1]), inbox([], 2), [2, 1]],
    ["two", inbox([2, 1]), inbox([4, 3], 4), [4, 3, 2, 1]],
    ["one that is there already", inbox([3, 2, 1]), inbox([4, 3], 4), [4, 3, 2, 1]],
    ["more than are kept", inbox([3, 2, 1]), inbox([5, 4], 3), [5, 4, 3]],
    ["somebody emptied it", inbox([2, 1]), inbox([], 0), []],
    ["somebody emptied it, and one came", inbox([2, 1]), inbox([3], 1), [3]],
  ])("%s", (_, known, come, ns) => {
    expect(mergeInbox(known, come).deliveries.map(({ id }) => id)).toEqual(ns.map((n) => `ibx_${n}`));
  });

  test("brings the answer that is set by now, and leaves what was there untouched", () => {
    const known = inbox([1]);
    const merged = mergeInbox(known, inbox([2], 2, 503));
    expect(merged.answer.status).toBe(503);
    expect(merged.deliveries[1]).toBe(known.deliveries[0]);
  });
});
