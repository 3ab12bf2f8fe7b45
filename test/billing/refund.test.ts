import { describe, expect, test } from "bun:test";
import type { ChargeState, Unknown } from "../../src/billing/processor.ts";
import { afterRefundRequest, nextRefundStep } from "../../src/billing/refund.ts";
import { dayMs, refundPatienceMs } from "../../src/billing/terms.ts";
import type { Charge } from "../../src/domain/books.ts";
import { chargeOf } from "../support/billing-factory.ts";

const now = 100 * dayMs;
const createdAt = now - 20 * dayMs;
const minuteMs = 60_000;

const paid: ChargeState = {
  kind: "succeeded",
  reference: "sub-1",
  amountKobo: 512_300,
  requestedKobo: 500_000,
  currency: "NGN",
  mode: "test",
  transactionId: "1",
  card: null,
};
const unanswered: Unknown = { kind: "unknown", reason: "no answer" };
const refundable = (fields: Partial<Charge>) => chargeOf({ state: "superseded", createdAt, ...fields });

describe("the next step of a refund", () => {
  test.each<[string, Partial<Charge>, ChargeState | Unknown, ReturnType<typeof nextRefundStep>]>([
    [
      "asks for the amount that was paid, not for the one that was requested",
      { refund: "due" },
      paid,
      { kind: "request", amountKobo: 512_300, isRepeated: false },
    ],
    [
      "is over once the payment no longer stands",
      { refund: "requested" },
      { kind: "reversed" },
      { kind: "note", note: { stage: "done", checkAfterMs: null, isRequestedNow: false } },
    ],
    [
      "comes again in ten minutes when the processor does not answer",
      { refund: "due" },
      unanswered,
      { kind: "note", note: { stage: "due", checkAfterMs: 10 * minuteMs, isRequestedNow: false } },
    ],
    [
      "keeps in mind that it was requested when the processor does not answer",
      { refund: "requested" },
      unanswered,
      { kind: "note", note: { stage: "requested", checkAfterMs: 10 * minuteMs, isRequestedNow: false } },
    ],
    [
      "waits a day where nothing has been paid",
      { refund: "due" },
      { kind: "pending", word: "ongoing" },
      { kind: "note", note: { stage: "due", checkAfterMs: dayMs, isRequestedNow: false } },
    ],
    [
      "waits for a request that still has time",
      { refund: "requested", resendAt: now + 1 },
      paid,
      { kind: "note", note: { stage: "requested", checkAfterMs: dayMs, isRequestedNow: false } },
    ],
    [
      "asks again once the time is over",
      { refund: "requested", resendAt: now },
      paid,
      { kind: "request", amountKobo: 512_300, isRepeated: true },
    ],
    [
      "gives a request of unknown age its time from now on",
      { refund: "requested", resendAt: null },
      paid,
      { kind: "note", note: { stage: "requested", checkAfterMs: dayMs, isRequestedNow: true } },
    ],
    [
      "does not take the time at which the charge could be sent again for that of the refund",
      { refund: "requested", resendAt: createdAt + refundPatienceMs - 1 },
      paid,
      { kind: "note", note: { stage: "requested", checkAfterMs: dayMs, isRequestedNow: true } },
    ],
  ])("%s", (_, fields, state, step) => {
    expect(nextRefundStep(refundable(fields), state, now)).toEqual(step);
  });
});

describe("after a refund request", () => {
  test.each([
    [
      "an accepted one is checked a minute later, and its time begins",
      { kind: "accepted" },
      "requested",
      minuteMs,
      true,
    ],
    ["one for a payment that was refunded before is done", { kind: "already_refunded" }, "done", null, false],
    [
      "one that is rejected is made again a day later",
      { kind: "rejected", reason: "balance too low", retry: "operator" },
      "due",
      dayMs,
      false,
    ],
    ["one without an answer is looked into ten minutes later", unanswered, "due", 10 * minuteMs, false],
  ] as const)("%s", (_, answer, stage, checkAfterMs, isRequestedNow) => {
    expect(afterRefundRequest(answer)).toEqual({ stage, checkAfterMs, isRequestedNow });
  });
});
