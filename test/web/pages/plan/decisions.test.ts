import { describe, expect, test } from "bun:test";
import { endOf } from "../../../../web/pages/plan/decisions.ts";

const charge = {
  reference: "upg-1",
  kind: "upgrade",
  amount_kobo: 1_500_000,
  created_at: "2026-03-01T12:00:00.000Z",
  completed_at: null,
} as const;

describe("the newest payment has ended", () => {
  test.each([
    ["succeeded", null, { isPaid: true, reason: null }],
    // The page that was paid at last had declined another card before.
    ["succeeded", "Insufficient funds", { isPaid: true, reason: null }],
    ["failed", "Declined", { isPaid: false, reason: "Declined" }],
    ["refunded", null, { isPaid: true, reason: null }],
    ["refunding", "The card cannot be charged again", { isPaid: false, reason: "The card cannot be charged again" }],
    ["superseded", null, null],
    ["pending", "Declined", null],
    ["confirmation_required", null, null],
  ] as const)("%s, %p: %j", (state, reason, end) => {
    const older = { ...charge, state: "succeeded", reason: null } as const;
    expect(endOf([{ ...charge, state, reason }, older])).toEqual(end);
  });

  test("if there is one", () => {
    expect(endOf([])).toBeNull();
  });
});
