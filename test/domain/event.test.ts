import { describe, expect, test } from "bun:test";
import { isFiltered, selectFailures, totalOf } from "../../src/domain/event.ts";

test.each([
  [0, 0, true],
  [10_000, 10_000, true],
  [10_001, 10_000, false],
])("of a filtered list %i records were counted: its total is %i, and exact: %p", (counted, total, totalIsExact) => {
  expect(totalOf(counted)).toEqual({ total, totalIsExact });
});

describe("a list that is narrowed by failures", () => {
  test.each([
    ["by nothing", {}, undefined],
    ["by a code", { code: "timeout" }, { code: "timeout", status: null }],
    ["by a status, which only answers have", { status: 503 }, { code: "http_status", status: 503 }],
    ["by a status and its code", { code: "http_status", status: 503 }, { code: "http_status", status: 503 }],
    ["by a status and another code: there is none", { code: "timeout", status: 503 }, null],
    ["in one state", { code: "timeout", state: "PENDING" }, { code: "timeout", status: null }],
    ["among what was delivered: there is none", { code: "timeout", state: "DELIVERED" }, null],
    ["among what was skipped: there is none", { status: 503, state: "SKIPPED" }, null],
    ["by the state alone", { state: "SKIPPED" }, undefined],
  ] as const)("%s", (_, filters, selection) => {
    expect(selectFailures(filters)).toEqual(selection);
  });

  test.each([
    [{}, false],
    [{ state: "FAILED" }, false],
    [{ state: "FAILED", code: "timeout" }, true],
    [{ status: 503 }, true],
  ] as const)("counters know of %j: not %p", (filters, isNarrowed) => {
    expect(isFiltered(filters)).toBe(isNarrowed);
  });
});
