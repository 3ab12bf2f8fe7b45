import { describe, expect, test } from "bun:test";
import { outcomeOf } from "../../../../web/pages/events/outcome.ts";
import {
  afterAttempt,
  afterRun,
  attemptedOf,
  findRow,
  finishedOf,
  type ListedRecord,
  meantOf,
  newerOf,
  toListed,
  withFresh,
} from "../../../../web/pages/events/record.ts";

const now = Date.UTC(2026, 2, 1, 12);
const url = "https://shop.example/hook";
const record: ListedRecord = {
  eventId: "evt_1",
  tenantId: "t1",
  state: "PENDING",
  ingestionTimestamp: "2026-03-01T11:59:55.000Z",
  targetWebhook: url,
  errorReason: null,
  errorCode: null,
  statusCode: null,
  attempts: 0,
  lastAttemptAt: null,
  lastDurationMs: null,
  nextAttemptAt: "2026-03-01T11:59:55.000Z",
  eventType: null,
  replayGroupId: null,
};
const failure = { errorReason: `HTTP 503 from ${url}`, errorCode: "http_status", statusCode: 503 };

const attempted = (news: Record<string, unknown>) =>
  attemptedOf({
    eventId: "evt_1",
    targetWebhook: url,
    startedAt: "2026-03-01T11:59:30.000Z",
    durationMs: 41,
    error: null,
    errorCode: null,
    statusCode: null,
    nextAttemptAt: null,
    replayGroupId: null,
    ...news,
  });

const finished = (news: Record<string, unknown>) =>
  finishedOf({
    eventId: "evt_1",
    targetWebhook: url,
    errorReason: null,
    errorCode: null,
    statusCode: null,
    replayGroupId: null,
    ...news,
  });

describe("a row says", () => {
  test.each<[string, Partial<ListedRecord>]>([
    ["Waiting", {}],
    ["HTTP 503 · 3 tries · next in 4 min", { ...failure, attempts: 3, nextAttemptAt: "2026-03-01T12:04:00.000Z" }],
    ["HTTP 503 · 1 try · next now", { ...failure, attempts: 1, nextAttemptAt: "2026-03-01T11:59:59.000Z" }],
    ["HTTP 503 · 1 try · waiting for its turn", { ...failure, attempts: 1, nextAttemptAt: "2026-03-01T11:59:44.000Z" }],
    ["Waiting · 2 tries · next now", { attempts: 2 }],
    ["Waiting for its turn", { nextAttemptAt: "2026-03-01T11:50:00.000Z" }],
    ["Waiting · held back by an earlier one with the same key", { heldBack: true }],
    ["Delivered · 1 try", { state: "DELIVERED", attempts: 1 }],
    ["Delivered · 41 ms · 1 try", { state: "DELIVERED", attempts: 1, lastDurationMs: 41 }],
    ["HTTP 503 · 1.2 s · 8 tries", { state: "FAILED", ...failure, attempts: 8, lastDurationMs: 1234 }],
    [
      "Webhook removed · 2 tries",
      { state: "FAILED", errorReason: "…", errorCode: "webhook_removed", attempts: 2, lastDurationMs: 41 },
    ],
    [
      "HTTP 503 from a version before the codes · 1 try",
      { state: "FAILED", errorReason: "HTTP 503 from a version before the codes", attempts: 1 },
    ],
    ["HTTP 503 · 8 tries", { state: "FAILED", ...failure, attempts: 8 }],
    [
      "No webhook was registered",
      { state: "FAILED", targetWebhook: "", errorReason: "No webhook …", errorCode: "no_webhook" },
    ],
  ])("%s", (words, fields) => {
    expect(outcomeOf({ ...record, ...fields }, now)).toBe(words);
  });
});

test("a row of a server that holds back deliveries does not say when the next attempt is", () => {
  const waiting = { ...record, ...failure, attempts: 3, nextAttemptAt: "2026-03-01T12:04:00.000Z" };
  expect(outcomeOf(waiting, now, true)).toBe("HTTP 503 · 3 tries · paused");
  expect(outcomeOf(record, now, true)).toBe("Waiting");
});

describe("the stream changes a row", () => {
  test("that nothing holds back any more", () => {
    const nextAttemptAt = "2026-03-01T12:05:00.000Z";
    const tried = afterAttempt({ ...record, heldBack: true }, attempted({ number: 1, nextAttemptAt }));
    expect("heldBack" in tried).toBe(false);
  });

  test("that waits for its next try", () => {
    const nextAttemptAt = "2026-03-01T12:05:00.000Z";
    expect(
      afterAttempt(record, attempted({ number: 1, ...failure, error: failure.errorReason, nextAttemptAt })),
    ).toEqual({
      ...record,
      ...failure,
      attempts: 1,
      lastAttemptAt: "2026-03-01T11:59:30.000Z",
      lastDurationMs: 41,
      nextAttemptAt,
    });
  });

  test("only by its end, when an attempt plans no other one: it may have been of an earlier run", () => {
    const tried = afterAttempt(record, attempted({ number: 1 }));
    expect(tried).toMatchObject({ state: "PENDING", attempts: 1 });
    const state = "DELIVERED";
    expect(afterRun(tried, finished({ state, attempts: 1 }))).toMatchObject({
      state,
      attempts: 1,
      nextAttemptAt: null,
    });
  });

  test("with why its run failed, and a success takes that away", () => {
    const failed = afterRun(record, finished({ state: "FAILED", attempts: 1, ...failure }));
    expect(failed).toMatchObject({ state: "FAILED", ...failure });
    expect(afterRun(failed, finished({ state: "DELIVERED", attempts: 2 }))).toMatchObject({
      ...{ errorReason: null, errorCode: null, statusCode: null },
    });
  });

  test("by nothing that it knows already", () => {
    const later = { ...record, attempts: 3 };
    expect(afterAttempt(later, attempted({ number: 3 }))).toBe(later);
    expect(afterRun(later, finished({ state: "FAILED", attempts: 2 }))).toBe(later);
  });

  test("but not to what is older than a reading", () => {
    const told = { ...record, attempts: 2 };
    expect(newerOf({ ...record, attempts: 1 }, told)).toBe(told);
    const read = { ...record, attempts: 2, replayGroupId: "again" };
    expect(newerOf(read, told)).toBe(read);
    expect(newerOf(read, undefined)).toBe(read);
  });

  test("to its end, also where an attempt of another run was counted meanwhile", () => {
    const read = { ...record, attempts: 2, replayGroupId: "again" };
    const ended = afterRun(read, finished({ state: "DELIVERED", attempts: 2, replayGroupId: "again" }));
    expect(newerOf(read, ended)).toBe(ended);
    // It was replayed since.
    expect(newerOf({ ...read, replayGroupId: "once more" }, ended)).toMatchObject({ state: "PENDING" });
    expect(newerOf({ ...read, state: "FAILED" }, ended)).toMatchObject({ state: "FAILED" });
  });

  test("without a webhook, when it is replayed to one", () => {
    const nowhere: ListedRecord = { ...record, targetWebhook: "", state: "FAILED", errorReason: "No webhook …" };
    const other = { ...nowhere, eventId: "evt_2" };
    expect(findRow([other, nowhere], { eventId: "evt_1", targetWebhook: url })).toBe(nowhere);
    expect(findRow([other], { eventId: "evt_1", targetWebhook: url })).toBeUndefined();
    expect(findRow([nowhere, record], { eventId: "evt_1", targetWebhook: url })).toBe(record);
    expect(afterRun(nowhere, finished({ state: "DELIVERED", attempts: 1 }))).toMatchObject({ targetWebhook: url });
  });
});

test("an event that was read again stays in its rows, also those of webhooks that are gone", () => {
  const other = { ...record, eventId: "evt_2" };
  const gone = { ...record, targetWebhook: "https://old.example/" };
  const fresh = { ...record, attempts: 2 };
  const added = { ...record, targetWebhook: "https://new.example/" };
  expect(withFresh([other, record, gone], [added, fresh])).toEqual([other, fresh, added]);
  expect(withFresh([other, gone], [])).toEqual([other, gone]);
});

test.each<[string, string, string[], string]>([
  ["of the row which led to it", "evt_1 b", ["DELIVERED", "DELIVERED", "FAILED"], "b"],
  ["that did not arrive", "", ["DELIVERED", "DELIVERED", "FAILED"], "c"],
  ["that did not arrive, for a row of another event", "evt_2 b", ["DELIVERED", "PENDING", "FAILED"], "b"],
  ["first made, if all of them arrived", "", ["DELIVERED", "DELIVERED", "DELIVERED"], "a"],
])("the delivery of an event that is meant is the one %s", (_, followed, states, meant) => {
  const records = states.map((state, n) => ({ eventId: "evt_1", targetWebhook: "abc".charAt(n), state }));
  expect(meantOf(records, followed)?.targetWebhook).toBe(meant);
});

describe("a page that is read again up to its own first record", () => {
  const events = [{ ...record, originalPayload: null }];
  const read = { events, total: 60, totalEvents: 30 };
  const before = { ...toListed(read, true, undefined), readAt: now };
  const later = { events: [{ ...record, eventId: "evt_0", originalPayload: null }] };
  const known = { total: 60, totalIsExact: true, totalEvents: 30, searchedTo: null };

  test.each([
    { what: "as many", page: { total: 60 }, counts: known },
    { what: "more", page: { total: 162 }, counts: { ...known, total: 162, totalEvents: null } },
    { what: "fewer", page: { total: 2 }, counts: { ...known, total: 2, totalEvents: null } },
    {
      what: "fewer, of a search that goes on",
      page: { total: 2, totalIsExact: false, searchedTo: record.ingestionTimestamp },
      counts: { total: 2, totalIsExact: false, totalEvents: null, searchedTo: record.ingestionTimestamp },
    },
    {
      what: "more than are counted",
      page: { total: 10_000, totalIsExact: false },
      counts: { ...known, total: 10_000, totalIsExact: false, totalEvents: null },
    },
  ])("counts what it holds by now: $what", ({ page, counts }) => {
    const { held, newestId } = before;
    const records = [{ ...record, eventId: "evt_0" }];
    expect(toListed({ ...later, ...page }, true, before)).toMatchObject({ ...counts, records, held, newestId });
  });

  test("keeps a count that went further than one up to a time does", () => {
    const many = { ...before, total: 14_212 };
    expect(toListed({ ...later, total: 10_000, totalIsExact: false }, true, many)).toMatchObject({
      ...known,
      total: 14_212,
    });
  });

  test("is a new one where nothing is held, as on later pages", () => {
    const page2 = { ...toListed(read, false, undefined), readAt: now };
    expect(toListed({ ...later, total: 9 }, false, page2)).toMatchObject({ total: 9, held: "", newestId: "evt_0" });
  });
});
