import { describe, expect, test } from "bun:test";
import { accept, type EarlierAnswer, fanOut, firstDelivery, type Submission } from "../../src/domain/acceptance.ts";
import { noEvents, type TenantState } from "../../src/domain/tenant-state.ts";
import { registered, tenantState } from "../support/tenant-state.ts";

const hourMs = 60 * 60 * 1000;
const now = Date.UTC(2026, 0, 15, 12);
/** The clock was set back by a minute. */
const moment = { now, orderedNow: now + 60_000 };
const [a, b, c] = [registered(1), registered(2), registered(3)];

const submission = (changes: Partial<Submission> = {}): Submission => ({
  types: [null],
  apiKey: { expiresAt: null },
  fingerprint: null,
  earlier: null,
  mayGrow: true,
  ...changes,
});

const untyped = (events: number) => Array<null>(events).fill(null);

/** What becomes of it, in a word: the code of a refusal. */
function outcomeOf(state: TenantState, submitted: Submission, at = moment): string {
  const acceptance = accept(state, submitted, at);
  return acceptance.kind === "refused" ? acceptance.error.code : acceptance.kind;
}

describe("an event that is accepted (rules, section 7)", () => {
  test.each([
    ["one webhook", [a]],
    ["three webhooks", [a, b, c]],
  ])("waits for each of %s, in their order, due by the clock", (_, webhooks) => {
    expect(accept(tenantState({ webhooks }), submission(), moment)).toEqual({
      kind: "accepted",
      records: [webhooks.map((webhook) => ({ state: "PENDING", webhook, nextAttemptAt: now }))],
    });
  });

  test("without a webhook has one record, which has failed and says why", () => {
    expect(accept(tenantState(), submission(), moment)).toEqual({
      kind: "accepted",
      records: [
        [
          {
            state: "FAILED",
            webhook: null,
            finishedAt: moment.orderedNow,
            failure: { code: "no_webhook", reason: "No webhook was registered when the event arrived" },
          },
        ],
      ],
    });
  });

  test("waits for those that take its type, each event of a batch by itself", () => {
    const orders = registered(1, { eventTypes: ["order.*"] });
    const refunds = registered(2, { eventTypes: ["refund", "order.refunded"] });
    const types = ["order.paid", "order.refunded", "refund", "order.paid", "login", null];
    const acceptance = accept(tenantState({ webhooks: [orders, refunds] }), submission({ types }), moment);
    if (acceptance.kind !== "accepted") throw new Error("It was not accepted");
    const takers = acceptance.records.map((records) => records.map(({ state, webhook }) => webhook?.key ?? state));
    expect(takers).toEqual([[1], [1, 2], [2], [1], ["SKIPPED"], ["SKIPPED"]]);
  });

  test("that no webhook takes has one record, which was skipped and is no failure", () => {
    const webhooks = [registered(1, { eventTypes: ["order.*"] })];
    expect(accept(tenantState({ webhooks }), submission({ types: ["order"] }), moment)).toEqual({
      kind: "accepted",
      records: [[{ state: "SKIPPED", webhook: null, finishedAt: moment.orderedNow }]],
    });
  });

  test("has failed for a webhook that is disabled, and waits for the others", () => {
    const disabled = registered(2, { disabled: { at: now, reason: "gone" } });
    expect(accept(tenantState({ webhooks: [a, disabled] }), submission(), moment)).toEqual({
      kind: "accepted",
      records: [
        [
          { state: "PENDING", webhook: a, nextAttemptAt: now },
          {
            state: "FAILED",
            webhook: disabled,
            finishedAt: moment.orderedNow,
            failure: {
              code: "webhook_disabled",
              reason: "The webhook was disabled before the delivery succeeded",
            },
          },
        ],
      ],
    });
  });

  test("that only a disabled webhook takes is no event that none takes", () => {
    const disabled = registered(1, { eventTypes: ["order.*"], disabled: { at: now, reason: "failing" } });
    const outcome = (type: string) => {
      const acceptance = accept(tenantState({ webhooks: [disabled] }), submission({ types: [type] }), moment);
      return acceptance.kind === "accepted" && acceptance.records[0]?.map(({ state }) => state);
    };
    expect([outcome("order.paid"), outcome("refund")]).toEqual([["FAILED"], ["SKIPPED"]]);
  });

  test("begins with a first run of which nothing has been tried", () => {
    const event = {
      deliveryKey: 7,
      eventSeq: 9,
      eventId: "evt_9",
      payload: Buffer.from("{}"),
      trace: null,
      orderHash: 3,
    };
    const { tenant } = tenantState({ tenant: { tier: "business", enforcedTier: "pro" } });
    expect(firstDelivery(tenant, a, event)).toEqual({
      ...event,
      tenantKey: tenant.key,
      tenantId: tenant.id,
      tier: "pro",
      webhookKey: a.key,
      url: a.url,
      limits: { rateLimit: null, maxConcurrency: null },
      sealedHeaders: null,
      run: 1,
      attemptsInRun: 0,
      attempts: 0,
      replayKey: null,
      replayGroupId: null,
    });
  });
});

test("no webhook is no record to wait for", () => {
  expect(fanOut([], moment)).toEqual([]);
});

describe("an idempotency key (rules, section 6)", () => {
  const fingerprint = Buffer.from("of this request");
  const earlier = (changes: Partial<EarlierAnswer> = {}): EarlierAnswer => ({
    fingerprint: new Uint8Array(fingerprint),
    eventIds: ["evt_1", "evt_2"],
    createdAt: now - hourMs,
    ...changes,
  });
  const another = Buffer.from("of another one");

  test.each([
    ["that is new", "accepted", null],
    ["of the same request", "repeated", earlier()],
    ["of the same request a moment less than 24 hours ago", "repeated", earlier({ createdAt: now - 24 * hourMs + 1 })],
    ["of the same request 24 hours ago", "accepted", earlier({ createdAt: now - 24 * hourMs })],
    ["of another request", "idempotency_key_reused", earlier({ fingerprint: another })],
    ["of another request 24 hours ago", "accepted", earlier({ fingerprint: another, createdAt: now - 24 * hourMs })],
    ["of a request from before the clock was set back", "repeated", earlier({ createdAt: now + hourMs })],
  ])("%s: %s", (_, outcome, found) => {
    expect(outcomeOf(tenantState(), submission({ fingerprint, earlier: found }))).toBe(outcome);
  });

  test("that is met again gives the ids of the first time", () => {
    const repeated = { kind: "repeated", eventIds: ["evt_1", "evt_2"] };
    expect(accept(tenantState(), submission({ fingerprint, earlier: earlier() }), moment)).toEqual(repeated as never);
  });

  test("answers also when the account may no longer send, but never for one that is gone", () => {
    const again = submission({ fingerprint, earlier: earlier(), mayGrow: false });
    expect(outcomeOf(tenantState({ tenant: { operatorSuspendedAt: 1 } }), again)).toBe("repeated");
    expect(outcomeOf(tenantState({ gone: true }), again)).toBe("account_gone");
  });
});

describe("the API key that an event came with (rules, section 5)", () => {
  test.each([
    ["has no end", { expiresAt: null }, "accepted"],
    ["ends a moment later", { expiresAt: now + 1 }, "accepted"],
    ["ends now", { expiresAt: now }, "unauthenticated"],
    ["has ended", { expiresAt: now - 1 }, "unauthenticated"],
    ["is no key of the account any more", null, "unauthenticated"],
  ])("%s", (_, apiKey, outcome) => {
    expect(outcomeOf(tenantState(), submission({ apiKey }))).toBe(outcome);
  });

  test("is asked before the answer of an idempotency key, which nobody else may hear", () => {
    const fingerprint = Buffer.from("of this request");
    const earlier = { fingerprint: new Uint8Array(fingerprint), eventIds: ["evt_1"], createdAt: now };
    expect(outcomeOf(tenantState(), submission({ apiKey: null, fingerprint, earlier }))).toBe("unauthenticated");
  });
});

describe("the quota of a month (rules, section 4)", () => {
  const used = (eventsInMonth: number, month = 202601) => ({
    counters: { ...noEvents, month, eventsInMonth, events: 50_000_000 },
  });

  test.each([
    ["free", 9_999, 1, "accepted"],
    ["free", 10_000, 1, "quota_exceeded"],
    ["free", 9_000, 1_000, "accepted"],
    ["free", 9_001, 1_000, "quota_exceeded"],
    ["pro", 10_000, 1, "accepted"],
    ["pro", 5_000_000, 1, "quota_exceeded"],
    ["business", 24_999_999, 1, "accepted"],
    ["enterprise", 100_000_000, 1, "quota_exceeded"],
  ] as const)("on %s after %i events, %i more: %s", (tier, before, events, outcome) => {
    const state = tenantState({ tenant: { tier, enforcedTier: tier }, ...used(before) });
    expect(outcomeOf(state, submission({ types: untyped(events) }))).toBe(outcome);
  });

  test.each([
    [7, 6, "accepted"],
    [7, 7, "quota_exceeded"],
    [20_000, 19_999, "accepted"],
    [0, 0, "quota_exceeded"],
  ])("of %i by the operator after %i events: %s", (ownEventsPerMonth, before, outcome) => {
    expect(outcomeOf(tenantState({ tenant: { ownEventsPerMonth }, ...used(before) }), submission())).toBe(outcome);
  });

  test("is that of the plan in force, not of the one asked for", () => {
    const state = tenantState({ tenant: { tier: "pro", enforcedTier: "free" }, ...used(10_000) });
    expect(outcomeOf(state, submission())).toBe("quota_exceeded");
  });

  test.each([
    ["is free again in the next month", Date.UTC(2026, 1, 1), Date.UTC(2026, 1, 1), "accepted"],
    ["goes by the time that the events carry", Date.UTC(2026, 0, 31, 23), Date.UTC(2026, 1, 1), "accepted"],
    ["is not free again in an earlier month", Date.UTC(2025, 11, 31), Date.UTC(2025, 11, 31), "quota_exceeded"],
  ])("%s", (_, clock, orderedNow, outcome) => {
    expect(outcomeOf(tenantState(used(10_000)), submission(), { now: clock, orderedNow })).toBe(outcome);
  });

  test.each([
    [10_000, "accepted"],
    [10_001, "quota_exceeded"],
  ])("is a whole one for the %i first events of the next month: %s", (events, outcome) => {
    const february = Date.UTC(2026, 1, 1);
    const at = { now: february, orderedNow: february };
    expect(outcomeOf(tenantState(used(1)), submission({ types: untyped(events) }), at)).toBe(outcome);
  });

  test.each([
    [10_000, "All of the account's 10000 events"],
    [9_997, "All but 3 of the account's 10000 events"],
    [10_050, "All of the account's 10000 events"], // the quota has been lowered
  ])("after %i events says that %s, and when to come back", (before, words) => {
    const acceptance = accept(tenantState(used(before)), submission({ types: untyped(4) }), { now, orderedNow: now });
    if (acceptance.kind !== "refused") throw new Error("It was accepted");
    expect(acceptance.error.message).toContain(words);
    expect(acceptance.error.retryAfterSeconds).toBe((Date.UTC(2026, 1, 1) - now) / 1000);
  });
});

describe("of several refusals the first in the order of judgement is given (rules, section 3):", () => {
  const full = { ...noEvents, month: 202601, eventsInMonth: 10_000, events: 10_000 };
  const suspended = { operatorSuspendedAt: 1, paymentSuspendedAt: 1 };
  const noRoom = submission({ mayGrow: false });

  test.each([
    ["account_gone", tenantState({ gone: true, tenant: suspended, counters: full }), { ...noRoom, apiKey: null }],
    ["unauthenticated", tenantState({ tenant: suspended, counters: full }), { ...noRoom, apiKey: null }],
    ["card_not_verified", tenantState({ tenant: { ...suspended, enforcedTier: null }, counters: full }), noRoom],
    ["account_suspended", tenantState({ tenant: suspended, counters: full }), noRoom],
    ["quota_exceeded", tenantState({ counters: full }), noRoom],
    ["storage_full", tenantState(), noRoom],
    ["accepted", tenantState({ tenant: { pastDueAt: 1 } }), submission()],
  ])("%s", (outcome, state, submitted) => {
    expect(outcomeOf(state, submitted)).toBe(outcome);
  });
});
