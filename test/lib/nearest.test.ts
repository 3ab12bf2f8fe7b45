import { describe, expect, test } from "bun:test";
import { nearestAmong } from "../../src/lib/nearest.ts";

const names = ["webhook_url", "name", "event_types", "rate_limit", "paused", "delay_ms", "loginId"];

describe("the name that is meant", () => {
  test.each([
    ["other capitals", "Rate_Limit", "rate_limit"],
    ["camel case", "rateLimit", "rate_limit"],
    ["no separator", "ratelimit", "rate_limit"],
    ["a hyphen", "rate-limit", "rate_limit"],
    ["snake case", "login_id", "loginId"],
    ["a typo", "rate_limt", "rate_limit"],
    ["a typo in camel case", "eventType", "event_types"],
    ["letters swapped", "naem", "name"],
    ["its first word", "delay", "delay_ms"],
    ["its last word", "types", "event_types"],
  ])("with %s", (_, given, meant) => expect(nearestAmong(names)(given)).toBe(meant));

  test.each([
    "ident",
    "window",
    "state",
    "failing_since",
    "tenant_name",
    "max_rate_limit",
    "rate_limit_per_second",
    "nameOfHook",
    "named_by",
    "old_url",
    "note",
    "x".repeat(100),
    "",
  ])("%p is none of them", (given) => expect(nearestAmong(names)(given)).toBeNull());
});
