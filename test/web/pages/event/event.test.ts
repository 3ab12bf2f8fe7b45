import { describe, expect, test } from "bun:test";
import type { Attempt } from "../../../../web/api/types.ts";
import { newestPages } from "../../../../web/pages/event/attempt-pages.ts";
import { payloadOf } from "../../../../web/pages/event/payload-of.ts";
import { forgottenInWords, runsOf, sizeOf } from "../../../../web/pages/event/runs.ts";

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

const tries = (...labels: (string | null)[]) =>
  labels.map(
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

test("tries stand together by what asked for them", () => {
  const runs = runsOf(tries(null, null, "after-lunch", "again", "again", "after-lunch"));
  expect(runs.map((run) => [run.replayGroupId, run.attempts.map(({ number }) => number)])).toEqual([
    [null, [1, 2]],
    ["after-lunch", [3]],
    ["again", [4, 5]],
    ["after-lunch", [6]],
  ]);
  expect(runsOf([])).toEqual([]);
});

test("where the earliest tries are not listed, the oldest run shown may have had more", () => {
  const sizes = (attempts: readonly Attempt[]) => runsOf(attempts).map((run, i) => sizeOf(run, i === 0));
  const all = tries(null, null, "again", "again", "later");
  expect(sizes(all)).toEqual(["2 attempts", "2 attempts", "1 attempt"]);
  expect(sizes(all.slice(1))).toEqual(["at least 1 attempt", "2 attempts", "1 attempt"]);
  expect(sizes(all.slice(2))).toEqual(["at least 2 attempts", "1 attempt"]);
  expect(forgottenInWords(1)).toBe("1 earlier attempt is no longer listed");
  expect(forgottenInWords(1_204)).toBe("1\u202f204 earlier attempts are no longer listed");
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
