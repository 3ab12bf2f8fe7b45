import { describe, expect, test } from "bun:test";
import type { EventRecord } from "../../src/domain.ts";
import { pageJson, recordJson, recordsJson } from "../../src/events/record.ts";

const record = (fields: Partial<EventRecord> = {}): EventRecord => ({
  eventId: "evt_01jc8x2m4e7n9q3s5v7y9a1c3e",
  state: "DELIVERED",
  ingestedAt: Date.UTC(2026, 2, 1, 12, 34, 56, 789),
  targetWebhook: "https://example.com/hooks",
  errorReason: null,
  payload: new TextEncoder().encode("{}"),
  attempts: 1,
  attemptsForgotten: 0,
  lastAttemptAt: Date.UTC(2026, 2, 1, 12, 34, 57),
  nextAttemptAt: null,
  replayGroupId: null,
  ...fields,
});

describe("recordJson", () => {
  test("has the specified fields in their order, then the extra ones", () => {
    expect(recordJson(record(), "t5k2m8q0w3r7xa")).toBe(
      '{"eventId":"evt_01jc8x2m4e7n9q3s5v7y9a1c3e","tenantId":"t5k2m8q0w3r7xa","state":"DELIVERED",' +
        '"ingestionTimestamp":"2026-03-01T12:34:56.789Z","targetWebhook":"https://example.com/hooks","errorReason":null,' +
        '"originalPayload":{},"attempts":1,"lastAttemptAt":"2026-03-01T12:34:57.000Z","nextAttemptAt":null,"replayGroupId":null}',
    );
  });

  test.each([
    '{"n":12345678901234567890123,"one":1.0,"e":1E+2}',
    '{"b":1,"a":2,"b":3}',
    '{ "spaced" :\n\t[ 1 , 2 ] }',
    '{"escaped":"\\u00e9\\/\\ud800","plain":"é 🚀 \u2028"}',
    '{"__proto__":{"constructor":null}}',
    '{"marked":"\ufeff"}',
  ])("carries the payload %p as it was submitted", (payload) => {
    const bytes = new TextEncoder().encode(payload);
    expect(recordJson(record({ payload: bytes }), "t1")).toContain(`"originalPayload":${payload},"attempts"`);
  });

  test("says null where the payload was not read", () => {
    expect(recordJson(record({ payload: null }), "t1")).toContain('"originalPayload":null,"attempts"');
  });

  test("escapes what the tenant chose", () => {
    const label = 'a "quoted"\nlabel';
    expect(JSON.parse(recordJson(record({ replayGroupId: label }), "t1")).replayGroupId).toBe(label);
  });

  test.each([
    ["PENDING", "2026-03-01T13:00:00.000Z"],
    ["DELIVERED", null],
    ["FAILED", null],
  ] as const)("a record that is %s has the next attempt at %p", (state, shown) => {
    const nextAttemptAt = Date.UTC(2026, 2, 1, 13);
    expect(JSON.parse(recordJson(record({ state, nextAttemptAt }), "t1")).nextAttemptAt).toBe(shown);
  });
});

test("recordsJson is a JSON array", () => {
  expect(recordsJson([], "t1")).toBe("[]");
  expect(JSON.parse(recordsJson([record(), record()], "t1"))).toHaveLength(2);
});

describe("pageJson", () => {
  const page = { records: [record()], total: 10_000, totalIsExact: false };

  test("says whether the total is exact when a filter was given", () => {
    expect(Object.keys(JSON.parse(pageJson(page, "t1", { isFiltered: true })))).toEqual([
      "events",
      "total",
      "totalIsExact",
    ]);
  });

  test("has only the specified fields otherwise", () => {
    const shown = JSON.parse(pageJson({ ...page, totalIsExact: true }, "t1", { isFiltered: false }));
    expect(Object.keys(shown)).toEqual(["events", "total"]);
    expect(shown.total).toBe(10_000);
  });
});
