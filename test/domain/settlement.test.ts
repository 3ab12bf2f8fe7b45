import { describe, expect, test } from "bun:test";
import { unreadable, webhookRemoved } from "../../src/domain/failure.ts";
import { asQueued, type FoundRecord, giveUp, type JudgedAttempt, settle } from "../../src/domain/settlement.ts";
import { registered } from "../support/tenant-state.ts";

const now = 9_000;
const webhook = registered(1);
const run = 2;
const answered = { error: "HTTP 503 from https://1.example/hook", errorCode: "http_status", statusCode: 503 } as const;

const outcomes = {
  delivered: { next: { kind: "delivered" }, attempt: { error: null, errorCode: null, statusCode: 204 } },
  failed: { next: { kind: "failed" }, attempt: answered },
  retry: { next: { kind: "retry", at: 14_000 }, attempt: answered },
} as const satisfies Record<string, Pick<JudgedAttempt, "next" | "attempt">>;

type Outcome = keyof typeof outcomes;

/** An attempt of the second run, made while its webhook was registered or removed. */
function settled(found: FoundRecord | null, outcome: Outcome, isRegistered: boolean) {
  const attempt = { delivery: { webhookKey: webhook.key, run }, ...outcomes[outcome] };
  return settle(found, isRegistered ? [registered(7), webhook] : [registered(7)], attempt, now);
}

const waiting = asQueued({ run });
const failedByRemoval: FoundRecord = { state: "FAILED", run, errorCode: "webhook_removed", failureKey: 1 };

const noFailure = { errorReason: null, errorCode: null, statusCode: null };
const byAnswer = { errorReason: answered.error, errorCode: "http_status", statusCode: 503 } as const;
const byRemoval = {
  errorReason: "The webhook was removed before the delivery succeeded",
  errorCode: "webhook_removed",
  statusCode: null,
} as const;
const delivered = { state: "DELIVERED", nextAttemptAt: null, finishedAt: now, ...noFailure } as const;
const failed = { state: "FAILED", nextAttemptAt: null, finishedAt: now, ...byAnswer } as const;
const failedAsRemoved = { ...failed, ...byRemoval };
const waits = { state: "PENDING", nextAttemptAt: 14_000, finishedAt: null, ...byAnswer } as const;

describe("an attempt of a record that waits (rules, section 7)", () => {
  test.each([
    ["delivered", delivered, "delivered"],
    ["failed", failed, "failed"],
    ["retry", waits, null],
  ] as const)("that ends %s settles it", (outcome, becomes, replay) => {
    expect(settled(waiting, outcome, true)).toEqual({ kind: "settled", becomes, replay, isLate: false });
  });

  test.each([
    ["delivered", delivered, "delivered"],
    ["failed", failed, "failed"],
    ["retry", failedAsRemoved, "failed"],
  ] as const)("that ends %s after its webhook was removed ends the run", (outcome, becomes, replay) => {
    expect(settled(waiting, outcome, false)).toEqual({ kind: "settled", becomes, replay, isLate: true });
  });
});

describe("an attempt of a record that was failed meanwhile, as its webhook was removed", () => {
  test.each([
    ["delivered", delivered, "corrected"],
    ["failed", failed, null],
    ["retry", failedAsRemoved, null],
  ] as const)("that ends %s still counts", (outcome, becomes, replay) => {
    expect(settled(failedByRemoval, outcome, false)).toEqual({ kind: "settled", becomes, replay, isLate: true });
  });

  test("never makes it wait again, whatever is registered", () => {
    expect(settled(failedByRemoval, "retry", true).becomes).toEqual(failedAsRemoved);
  });
});

describe("an attempt to a webhook that was disabled meanwhile", () => {
  const disabled = registered(webhook.key, { disabled: { at: 8_000, reason: "failing" } });
  const failedByDisabling: FoundRecord = { ...failedByRemoval, errorCode: "webhook_disabled" };
  const failedAsDisabled = {
    ...failedAsRemoved,
    errorReason: "The webhook was disabled before the delivery succeeded",
    errorCode: "webhook_disabled",
  } as const;
  const attempted = (found: FoundRecord, outcome: Outcome, webhooks = [disabled]) =>
    settle(found, webhooks, { delivery: { webhookKey: webhook.key, run }, ...outcomes[outcome] }, now);

  test.each([
    ["delivered", waiting, delivered, "delivered"],
    ["failed", waiting, failed, "failed"],
    ["retry", waiting, failedAsDisabled, "failed"],
    ["delivered", failedByDisabling, delivered, "corrected"],
    ["failed", failedByDisabling, failed, null],
    ["retry", failedByDisabling, failedAsDisabled, null],
  ] as const)("that ends %s ends the run of %j", (outcome, found, becomes, replay) => {
    expect(attempted(found, outcome)).toEqual({ kind: "settled", becomes, replay, isLate: false } as never);
  });

  test("never makes a record wait again that was failed, though the webhook was enabled since", () => {
    expect(attempted(failedByDisabling, "retry", [webhook]).becomes).toEqual(failedAsDisabled);
  });
});

describe("an attempt of a record that somebody else has by now", () => {
  const elsewhere = { ...waiting, isElsewhere: true };
  test.each(["failed", "retry"] as const)("that ends %s leaves what follows to them", (outcome) => {
    const nothing = { kind: "superseded", becomes: null, replay: null, isLate: false } as const;
    expect(settled(elsewhere, outcome, true)).toEqual(nothing);
  });

  test("and was acknowledged has delivered it", () => {
    expect(settled(elsewhere, "delivered", true)).toEqual(settled(waiting, "delivered", true));
  });
});

describe.each(["delivered", "failed", "retry"] as const)("an attempt that ends %s", (outcome) => {
  test.each([
    ["a newer run waits", { state: "PENDING", run: 3, errorCode: "http_status" }],
    ["a newer run was delivered", { state: "DELIVERED", run: 3, errorCode: null }],
    ["a newer run was failed as its webhook was removed", { ...failedByRemoval, run: 3 }],
    ["its run was delivered", { state: "DELIVERED", run, errorCode: null }],
    ["its run was delivered late", { state: "DELIVERED", run, errorCode: "webhook_removed" }],
    ["its run has failed for another reason", { state: "FAILED", run, errorCode: "http_status" }],
  ] as const)("changes nothing of a record of which %s", (_, found) => {
    for (const isRegistered of [true, false]) {
      const isLate = !isRegistered;
      const nothing = { kind: "superseded", becomes: null, replay: null, isLate } as const;
      expect(settled({ failureKey: null, ...found }, outcome, isRegistered)).toEqual(nothing);
    }
  });

  test("of a record that is no more is gone, and late if its webhook was removed", () => {
    const gone = { kind: "gone", becomes: null, replay: null } as const;
    expect(settled(null, outcome, true)).toEqual({ ...gone, isLate: false });
    expect(settled(null, outcome, false)).toEqual({ ...gone, isLate: true });
  });
});

test("a record that is given up has failed, and says why", () => {
  expect(giveUp(webhookRemoved, now)).toEqual(failedAsRemoved);
  expect(giveUp(unreadable, now)).toMatchObject({ state: "FAILED", errorCode: "unreadable", finishedAt: now });
});

test("of several late attempts one ends the run, and the others find it ended", () => {
  const first = settled(failedByRemoval, "failed", false);
  const found = {
    run,
    errorCode: first.becomes?.errorCode ?? null,
    state: first.becomes?.state ?? "PENDING",
    failureKey: 1,
  };
  expect(settled(found, "delivered", false).kind).toBe("superseded");
});
