import { describe, expect, test } from "bun:test";
import { checkPatterns, takes } from "../../src/domain/event-types.ts";

describe("a webhook", () => {
  test.each<[patterns: string[] | null, type: string | null, isTaken: boolean]>([
    [null, "order.paid", true],
    [null, null, true],
    [null, "postrider.webhook.failing", false],
    [["order.paid"], "order.paid", true],
    [["order.paid"], "order.paid.late", false],
    [["order.paid"], null, false],
    [["order.*"], "order.paid", true],
    [["order.*"], "order.paid.late", true],
    [["order.*"], "order", false],
    [["order.*"], "orders.paid", false],
    [["user.*", "order.paid"], "order.paid", true],
    [["postrider.*"], "postrider.webhook.failing", true],
    [["order.paid"], "ORDER.PAID", false],
  ])("with %j and an event of type %j: %p", (patterns, type, isTaken) => {
    expect(takes(patterns, type)).toBe(isTaken);
  });
});

describe("the patterns of a webhook", () => {
  test.each([["order"], ["order.paid"], ["order.*"], ["a-b_C.9.*"], ["postrider.*"]])("may be %s", (text) => {
    expect(() => checkPatterns([text], "event_types")).not.toThrow();
  });

  test.each([
    "",
    "*",
    ".*",
    "order.",
    ".order",
    "order..paid",
    "order*",
    "order.*.paid",
    "or der",
    "ordér",
    "x".repeat(201),
  ])("may not be %j", (text) => {
    expect(() => checkPatterns(["order", text], "webhooks[0].event_types")).toThrow(
      "webhooks[0].event_types[1] must be words of letters, digits, _ and - joined by dots",
    );
  });

  test("are none for every event, not *", () => {
    expect(() => checkPatterns(["*"], "event_types")).toThrow("order.*; null takes every event.");
  });

  test("are 1 to 50", () => {
    const many = (count: number) => Array.from({ length: count }, (_, i) => `t${i}`);
    expect(() => checkPatterns(many(50), "event_types")).not.toThrow();
    expect(() => checkPatterns(many(51), "event_types")).toThrow("event_types must have at most 50 patterns.");
    expect(() => checkPatterns([], "event_types")).toThrow("event_types must not be empty; null takes every event.");
  });
});
