import { describe, expect, test } from "bun:test";
import { chartWords } from "../../../web/pages/overview/caption.ts";

describe("the caption says that the chart", () => {
  const ended = "The chart shows each run as it ended";
  const leftOut = ", but not what was still waiting when its webhook was removed or disabled";
  test.each([
    ["shows each run", [], `${ended}.`],
    ["shows each run, whatever it failed with", ["http_status", "timeout", "server_restored"], `${ended}.`],
    ["leaves out what a removal ended", ["timeout", "webhook_removed"], `${ended}${leftOut}.`],
    ["leaves out what waited for a disabled webhook", ["webhook_disabled"], `${ended}${leftOut}.`],
  ])("%s", (_, codes, words) => {
    expect(chartWords(codes.map((code) => ({ code })))).toBe(words);
  });
});
