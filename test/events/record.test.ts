import { describe, expect, test } from "bun:test";
import type { EventRecord } from "../../src/domain/event.ts";
import { pageList, recordList, recordPieces } from "../../src/events/record.ts";
import { listReply } from "../../src/http/list-reply.ts";
import type { Cursor } from "../../src/store/cursor.ts";

const record = (fields: Partial<EventRecord> = {}): EventRecord => ({
  eventId: "evt_01jc8x2m4e7n9q3s5v7y9a1c3e",
  state: "DELIVERED",
  ingestedAt: Date.UTC(2026, 2, 1, 12, 34, 56, 789),
  targetWebhook: "https://example.com/hooks",
  errorReason: null,
  errorCode: null,
  statusCode: null,
  type: null,
  orderingKey: null,
  payload: new TextEncoder().encode("{}"),
  attempts: 1,
  attemptsForgotten: 0,
  lastAttemptAt: Date.UTC(2026, 2, 1, 12, 34, 57),
  lastDurationMs: 41,
  nextAttemptAt: null,
  replayGroupId: null,
  ...fields,
});

const recordJson = (of: EventRecord, tenantId: string) =>
  recordPieces(of, tenantId)
    .map((piece) => (typeof piece === "string" ? piece : new TextDecoder("utf-8", { ignoreBOM: true }).decode(piece)))
    .join("");

describe("the text of a record", () => {
  test("has the specified fields in their order, then the extra ones", () => {
    expect(recordJson(record(), "t5k2m8q0w3r7xa")).toBe(
      '{"eventId":"evt_01jc8x2m4e7n9q3s5v7y9a1c3e","tenantId":"t5k2m8q0w3r7xa","state":"DELIVERED",' +
        '"ingestionTimestamp":"2026-03-01T12:34:56.789Z","targetWebhook":"https://example.com/hooks","errorReason":null,' +
        '"originalPayload":{},"attempts":1,"lastAttemptAt":"2026-03-01T12:34:57.000Z","lastDurationMs":41,"nextAttemptAt":null,' +
        '"errorCode":null,"statusCode":null,"eventType":null,"replayGroupId":null}',
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

  test("says that the payload was erased", () => {
    const { originalPayload, payloadErased } = JSON.parse(
      recordJson(record({ payload: null, payloadErased: true }), "t1"),
    );
    expect({ originalPayload, payloadErased }).toEqual({ originalPayload: null, payloadErased: true });
  });

  test("carries the label as the store has it", () => {
    const label = 'a "quoted"\nlabel';
    const replayGroupId = new TextEncoder().encode(JSON.stringify(label));
    expect(JSON.parse(recordJson(record({ replayGroupId }), "t1")).replayGroupId).toBe(label);
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

/** A list that is there as it is. */
const listOf = (...records: EventRecord[]): Cursor<EventRecord> => ({
  next: async () => records.splice(0),
  get ended() {
    return records.length === 0;
  },
});

test("the records of an event are a JSON array", async () => {
  expect((await listReply(recordList(listOf(), "t1"))).text).toBe("[]");
  const { text } = await listReply(recordList(listOf(record(), record()), "t1"));
  expect(JSON.parse(String(text))).toHaveLength(2);
});

describe("a page", () => {
  const shown = async (isFiltered: boolean) => {
    const page = { records: listOf(record()), total: 10_000, totalIsExact: !isFiltered };
    return JSON.parse(String((await listReply(pageList(page, "t1", { isFiltered, payload: "whole" }))).text));
  };

  test("says whether the total is exact when a filter was given", async () => {
    expect(Object.keys(await shown(true))).toEqual(["events", "total", "totalIsExact"]);
  });

  test("has only the specified fields otherwise", async () => {
    const page = await shown(false);
    expect(Object.keys(page)).toEqual(["events", "total"]);
    expect(page.total).toBe(10_000);
  });
});
