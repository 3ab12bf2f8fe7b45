import { describe, expect, test } from "bun:test";
import { keptFor } from "../../src/domain/retention.ts";

const dayMs = 86_400_000;
const days = (n: number | null) => n && n * dayMs;

describe("how long events of an account and their payloads are kept, in days (rules, section 16)", () => {
  test.each<[string, (number | null)[], (number | null)[], (number | null)[]]>([
    ["for ever", [null, null], [null, null], [null, null]],
    ["as the server keeps those of any", [30, 7], [null, null], [30, 7]],
    ["payloads go first alone", [null, 7], [null, null], [null, 7]],
    ["a payload goes with its event", [30, null], [null, null], [30, 30]],
    ["a payload goes no later than its event", [7, 30], [null, null], [7, 7]],
    ["as the operator has said for the account", [30, 7], [90, 10], [90, 10]],
    ["the one as said, the other as of any", [30, 7], [90, null], [90, 7]],
    ["said to be for ever", [30, 7], [0, 0], [null, null]],
    ["payloads as long as the events", [30, 7], [null, 0], [30, 30]],
  ])("%s", (_, [events, payloads], [ownRetentionDays = null, ownPayloadDays = null], [keptEvents, keptPayloads]) => {
    const usual = { retentionMs: days(events ?? null), retentionPayloadsMs: days(payloads ?? null) };
    expect(keptFor({ ownRetentionDays, ownPayloadDays }, usual)).toEqual({
      events: days(keptEvents ?? null),
      payloads: days(keptPayloads ?? null),
    });
  });
});
