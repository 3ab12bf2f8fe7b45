import { describe, expect, test } from "bun:test";
import { lastErrorOf } from "../../../../web/pages/webhooks/last-error.ts";

const at = (second: number) => new Date(Date.UTC(2026, 10, 21, 14, 2, second)).toISOString();
const url = "https://shop.example/hook";
const healthOf = (second: number | null) => ({
  url,
  lastFailedAt: second === null ? null : at(second),
  lastError: second === null ? null : `HTTP 503 from ${url}`,
});
const cause = (code: string, status: number | null, second: number) => ({
  ...{ code, status, answers: [], moreAnswers: 0, types: [], waiting: 1, failed: 0 },
  ...{ isOngoing: true, firstAt: 0, lastFailedAt: Date.parse(at(second)) },
});
const timeout = cause("timeout", null, 20);

describe("the last error of a webhook", () => {
  test.each([
    ["is none where nothing fails", healthOf(null), [], null],
    ["is that of its latest deliveries", healthOf(10), [], { at: at(10), words: "HTTP 503 from the webhook" }],
    [
      "is of others, where the latest are untried",
      healthOf(null),
      [timeout],
      { at: at(20), words: "No response within 10 s" },
    ],
    [
      "is of others, where those failed later",
      healthOf(10),
      [cause("http_status", 500, 5), timeout],
      { at: at(20), words: "No response within 10 s" },
    ],
    [
      "is the server's sentence, where both are the same",
      healthOf(20),
      [timeout],
      { at: at(20), words: "HTTP 503 from the webhook" },
    ],
    [
      "is of an attempt",
      healthOf(10),
      [cause("webhook_disabled", null, 20)],
      { at: at(10), words: "HTTP 503 from the webhook" },
    ],
  ])("%s", (_, health, causes, last) => {
    expect(lastErrorOf(health, { causes })).toEqual(last);
  });

  test("is known without what fails", () => {
    expect(lastErrorOf(healthOf(10), undefined)?.at).toBe(at(10));
  });
});
