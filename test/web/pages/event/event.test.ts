import { describe, expect, test } from "bun:test";
import type { Attempt } from "../../../../web/api/types.ts";
import { newestPages } from "../../../../web/pages/event/attempt-pages.ts";
import { payloadOf } from "../../../../web/pages/event/payload-of.ts";
import { runsOf } from "../../../../web/pages/event/runs.ts";

describe("the payload of a delivery", () => {
  const bodyWith = (payload: string) =>
    `{"eventId":"evt_1","tenantId":"t1","ingestionTimestamp":"2026-03-01T12:34:56.789Z","payload":${payload}}`;

  test.each([
    "{}",
    '{"id":12345678901234567890,"price":1.0,"a":1,"a":2}',
    '{ "payload":{"payload":"}"} }\n',
    '{"__proto__":{"admin":true},"html":"</script>"}',
  ])("is the very text %s", (payload) => {
    expect(payloadOf(bodyWith(payload))).toBe(payload);
  });

  test("is missed aloud", () => {
    expect(() => payloadOf("{}")).toThrow("no payload");
  });
});

test("tries stand together by what asked for them", () => {
  const labels = [null, null, "after-lunch", "again", "again", "after-lunch"];
  const attempts = labels.map(
    (replayGroupId, i): Attempt => ({
      targetWebhook: "https://shop.example/hook",
      number: i + 1,
      startedAt: "2026-03-01T12:34:56.789Z",
      durationMs: 1,
      statusCode: 503,
      error: null,
      errorCode: null,
      responseBody: "",
      replayGroupId,
    }),
  );
  const runs = runsOf(attempts);
  expect(runs.map((run) => [run.replayGroupId, run.attempts.map(({ number }) => number)])).toEqual([
    [null, [1, 2]],
    ["after-lunch", [3]],
    ["again", [4, 5]],
    ["after-lunch", [6]],
  ]);
  expect(runsOf([])).toEqual([]);
});

test.each([
  [0, 100, []],
  [1, 100, [0]],
  [100, 100, [0]],
  [101, 100, [0, 1]],
  [200, 100, [1]],
  [250, 100, [1, 2]],
  [250, 250, [0, 1, 2]],
  [1_000, 300, [7, 8, 9]],
])("of %i tries the newest %i are on the pages %p", (total, wanted, pages) => {
  expect(newestPages(total, wanted)).toEqual(pages);
});
