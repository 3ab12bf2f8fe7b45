import { describe, expect, test } from "bun:test";
import { createEarlierLife } from "../../src/billing/earlier-life.ts";
import type { ChargeState, PaymentProcessor, Unknown } from "../../src/billing/processor.ts";
import { createReferences } from "../../src/billing/references.ts";
import type { BillingAccount, Charge } from "../../src/domain/books.ts";
import { createFakeClock } from "../support/fake-clock.ts";

const account = { key: 1, id: "bill_1" } as BillingAccount;
const purposes = [
  { kind: "subscription", month: "2026-10" },
  { kind: "upgrade", month: "2026-11" },
  { kind: "closing", month: "" },
] as const;
/** Two in a row that nobody knows are the end of charges, one that of closings. */
const references = 5;
const minutes = 60_000;

function begin() {
  const clock = createFakeClock(Date.UTC(2026, 10, 30, 11));
  const inBooks = new Set<string>();
  const asked: string[] = [];
  const made = new Map<string, ChargeState>();
  let silentAfter = Number.POSITIVE_INFINITY;
  const earlierLife = createEarlierLife({
    clock,
    log: { enabled: () => false, write() {} },
    references: createReferences(new Uint8Array(32)),
    store: {
      findCharge: async (reference) => (inBooks.has(reference) ? ({ reference } as Charge) : null),
      adoptCharge: async (_key, { reference }) => void inBooks.add(reference),
    },
    processor: {
      name: "sandbox",
      mode: "test",
      async lookUp(reference: string): Promise<ChargeState | Unknown> {
        if (asked.length >= silentAfter) return { kind: "unknown", reason: "no answer" };
        asked.push(reference);
        return made.get(reference) ?? { kind: "not_found" };
      },
    } as PaymentProcessor,
  });
  return {
    clock,
    asked,
    made,
    credit: () => earlierLife.credit(account, purposes),
    numberOf: (prefix: string) => earlierLife.numberOf((nth) => `${prefix}${nth}`),
    addToBooks: (reference: string) => void inBooks.add(reference),
    answersOnly(times: number) {
      silentAfter = asked.length + times;
    },
  };
}

describe("what a processor does not know", () => {
  test("is asked for once, however often an answer does not come in between", async () => {
    const { asked, credit, answersOnly } = begin();
    for (let n = 1; n < references; n += 1) {
      answersOnly(1);
      expect(await credit()).toMatchObject({ kind: "unknown" });
    }
    answersOnly(1);
    expect(await credit()).toEqual({ kind: "credited", any: false });
    expect([asked.length, new Set(asked).size]).toEqual([references, references]);
  });

  test("is asked for again after ten minutes", async () => {
    const { asked, credit, clock } = begin();
    await credit();
    clock.advance(10 * minutes - 1);
    await credit();
    expect(asked.length).toBe(references);
    clock.advance(1);
    await credit();
    expect(asked.length).toBe(2 * references);
  });

  test("is no longer free once it is in the books", async () => {
    const { numberOf, addToBooks } = begin();
    expect(await numberOf("sub-a")).toEqual({ kind: "number", nth: 1, isKnown: false });
    addToBooks("sub-a1");
    expect(await numberOf("sub-a")).toEqual({ kind: "number", nth: 2, isKnown: false });
  });

  test("and what it knows is looked at each time, as it may have been paid since", async () => {
    const { numberOf, made } = begin();
    made.set("sub-a1", { kind: "failed", reason: "Declined", retry: "later" });
    expect(await numberOf("sub-a")).toEqual({ kind: "number", nth: 2, isKnown: false });
    made.set("sub-a1", { kind: "pending", word: "ongoing" });
    expect(await numberOf("sub-a")).toEqual({ kind: "number", nth: 1, isKnown: true });
  });
});
