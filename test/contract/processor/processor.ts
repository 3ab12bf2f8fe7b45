import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type {
  CardCharge,
  ChargeableCard,
  ChargeState,
  PaymentProcessor,
  Succeeded,
  VerificationRequest,
} from "../../../src/billing/processor.ts";
import type { Customer, ProcessorFixture } from "./fixture.ts";

const email = "ops@acme.example";
const amountKobo = 10_000;
let references = 0;
const newReference = () => `ver-contract-${++references}`;

/** The text of `src/billing/processor.ts` as tests. A processor's adapter is one that passes them. */
export function processorContract(name: string, start: () => Promise<ProcessorFixture>): void {
  describe(`${name} is a payment processor:`, () => {
    let fixture: ProcessorFixture;
    let processor: PaymentProcessor;
    beforeEach(async () => {
      fixture = await start();
      processor = fixture.processor;
    });
    afterEach(() => fixture.stop());

    const verification = (more: Partial<VerificationRequest> = {}): VerificationRequest => ({
      reference: newReference(),
      email,
      amountKobo,
      returnUrl: "https://relay.example/v1/billing/return",
      cancelUrl: "https://relay.example/v1/billing/cancelled",
      ...more,
    });

    async function startPage(more: Partial<VerificationRequest> = {}) {
      const request = verification(more);
      const answer = await processor.startVerification(request);
      if (answer.kind !== "ready") throw new Error(`No page was made: ${JSON.stringify(answer)}`);
      return { reference: request.reference, page: answer.url };
    }

    async function successOf(reference: string): Promise<Succeeded> {
      const state = await processor.lookUp(reference);
      if (state.kind !== "succeeded") throw new Error(`${reference} has not succeeded: ${JSON.stringify(state)}`);
      return state;
    }

    /** A verification that is paid in one of the ways. */
    async function saveCard(
      how: Exclude<keyof Customer, "declines" | "confirms"> = "pays",
    ): Promise<{ reference: string; card: ChargeableCard }> {
      const { reference, page } = await startPage();
      await fixture.customer[how](page);
      const { card } = await successOf(reference);
      if (card === null) throw new Error(`${reference} left no card`);
      return { reference, card };
    }

    const chargeOf = (card: ChargeableCard, more: Partial<CardCharge> = {}): CardCharge => ({
      reference: newReference(),
      token: card.token,
      email: card.email,
      amountKobo: 250_000,
      returnUrl: "https://relay.example/v1/billing/return",
      ...more,
    });

    const state = (expected: Partial<ChargeState>) => ({
      kind: "state" as const,
      state: expect.objectContaining(expected),
    });

    test("says what it is", () => {
      expect(["sandbox", "paystack"]).toContain(processor.name);
      expect(["test", "live"]).toContain(processor.mode);
      expect(processor.chargesPerSecond).toBeGreaterThan(0);
    });

    describe("a verification", () => {
      test("is a page first, and no money moves by making it", async () => {
        const { reference, page } = await startPage();
        expect(new URL(page).protocol).toMatch(/^https?:$/);
        expect(await processor.lookUp(reference)).toEqual({ kind: "pending", word: expect.any(String) });
        expect(await fixture.timesCharged(reference)).toBe(0);
      });

      test("has no page for an address that the processor refuses, and the refusal says what it is about", async () => {
        const request = verification({ email: fixture.refusedEmail });
        const answer = await processor.startVerification(request);
        expect(answer).toEqual({ kind: "email_refused", reason: expect.stringMatching(/e-?mail/i) });
        expect(JSON.stringify(answer)).not.toContain(fixture.refusedEmail);
        expect(await processor.lookUp(request.reference)).toEqual({ kind: "not_found" });
        // The reference is free still.
        expect(await processor.startVerification({ ...request, email })).toMatchObject({ kind: "ready" });
      });

      test("succeeds when it is paid, with the card and what was asked and paid", async () => {
        const { reference, page } = await startPage();
        await fixture.customer.pays(page);
        const success = await successOf(reference);
        expect(success).toMatchObject({
          reference,
          amountKobo,
          currency: "NGN",
          mode: processor.mode,
          transactionId: expect.stringMatching(/./),
        });
        expect([amountKobo, null]).toContain(success.requestedKobo);
        expect(success.card).toMatchObject({
          token: expect.stringMatching(/./),
          email,
          last4: expect.stringMatching(/^\d{4}$/),
          expMonth: expect.stringMatching(/^(0[1-9]|1[0-2])$/),
          expYear: expect.stringMatching(/^20\d\d$/),
          brand: expect.stringMatching(/^\S+$/),
        });
        expect(await fixture.timesCharged(reference)).toBe(1);
      });

      test("answers the same however often it is looked up", async () => {
        const { reference, page } = await startPage();
        await fixture.customer.pays(page);
        expect(await processor.lookUp(reference)).toEqual(await processor.lookUp(reference));
      });

      test("leaves no card when the card cannot be charged again, and is paid nevertheless", async () => {
        const { reference, page } = await startPage();
        await fixture.customer.paysWithCardThatIsNotReusable(page);
        expect(await successOf(reference)).toMatchObject({ amountKobo, card: null });
      });

      test("has not succeeded when the bank declines, and still may", async () => {
        const { reference, page } = await startPage();
        await fixture.customer.declines(page);
        expect((await processor.lookUp(reference)).kind).toMatch(/^(failed|pending)$/);
        expect(await fixture.timesCharged(reference)).toBe(0);
        await fixture.customer.pays(page);
        expect(await successOf(reference)).toMatchObject({ reference });
        expect(await fixture.timesCharged(reference)).toBe(1);
      });

      test("has a reference of its own: the second one under it is a duplicate, paid or not", async () => {
        const { reference, page } = await startPage();
        expect(await processor.startVerification(verification({ reference }))).toEqual({ kind: "duplicate" });
        await fixture.customer.pays(page);
        expect(await processor.startVerification(verification({ reference }))).toEqual({ kind: "duplicate" });
        expect(await successOf(reference)).toMatchObject({ reference, amountKobo });
      });

      test("with the same card has the same signature, and with another one another", async () => {
        const first = await saveCard();
        const second = await saveCard();
        const other = await saveCard("paysWithCardThatAsksLater");
        expect(first.card.signature).toMatch(/./);
        expect(second.card.signature).toBe(first.card.signature);
        expect(other.card.signature).not.toBe(first.card.signature);
      });
    });

    test("a reference that nobody has used is not found", async () => {
      expect(await processor.lookUp(newReference())).toEqual({ kind: "not_found" });
    });

    describe("a charge of a saved card", () => {
      test("succeeds while its owner is away", async () => {
        const { card } = await saveCard();
        const charge = chargeOf(card);
        const answer = await processor.chargeSavedCard(charge);
        expect(answer).toEqual(
          state({ kind: "succeeded", reference: charge.reference, amountKobo: 250_000, currency: "NGN" }),
        );
        expect(await successOf(charge.reference)).toMatchObject({ amountKobo: 250_000, mode: processor.mode });
        expect(await fixture.timesCharged(charge.reference)).toBe(1);
      });

      test("that the bank declines has failed, for a reason and until later", async () => {
        const { card } = await saveCard("paysWithCardThatDeclinesLater");
        const charge = chargeOf(card);
        const failure = {
          kind: "failed",
          reason: expect.stringMatching(/\S/),
          retry: "later",
        } as const;
        expect(await processor.chargeSavedCard(charge)).toEqual({ kind: "state", state: failure });
        expect(await processor.lookUp(charge.reference)).toEqual(failure);
        expect(await fixture.timesCharged(charge.reference)).toBe(0);
      });

      test("that the bank wants confirmed has a page, and succeeds there", async () => {
        const { card } = await saveCard("paysWithCardThatAsksLater");
        const charge = chargeOf(card);
        const answer = await processor.chargeSavedCard(charge);
        expect(answer).toEqual(state({ kind: "confirmation", url: expect.stringMatching(/^https?:/) }));
        expect((await processor.lookUp(charge.reference)).kind).toMatch(/^(pending|confirmation)$/);
        expect(await fixture.timesCharged(charge.reference)).toBe(0);
        const page = answer.kind === "state" && answer.state.kind === "confirmation" ? answer.state.url : "";
        await fixture.customer.confirms(page);
        expect(await successOf(charge.reference)).toMatchObject({ amountKobo: 250_000 });
        expect(await fixture.timesCharged(charge.reference)).toBe(1);
      });

      test("under a reference that was used is a duplicate, and takes nothing", async () => {
        const { reference, card } = await saveCard();
        const charge = chargeOf(card);
        await processor.chargeSavedCard(charge);
        expect(await processor.chargeSavedCard(charge)).toEqual({ kind: "duplicate" });
        expect(await processor.chargeSavedCard({ ...charge, amountKobo: 5_000 })).toEqual({ kind: "duplicate" });
        expect(await fixture.timesCharged(charge.reference)).toBe(1);
        expect(await successOf(charge.reference)).toMatchObject({ amountKobo: 250_000 });
        expect(await processor.chargeSavedCard(chargeOf(card, { reference }))).toEqual({ kind: "duplicate" });
        expect(await fixture.timesCharged(reference)).toBe(1);
      });

      test("is made once when it is asked for twice at the same time", async () => {
        const { card } = await saveCard();
        const charge = chargeOf(card);
        const answers = await Promise.all([processor.chargeSavedCard(charge), processor.chargeSavedCard(charge)]);
        expect(answers.map(({ kind }) => kind).sort()).toEqual(["duplicate", "state"]);
        expect(await fixture.timesCharged(charge.reference)).toBe(1);
      });

      test("that was declined keeps its reference", async () => {
        const { card } = await saveCard("paysWithCardThatDeclinesLater");
        const charge = chargeOf(card);
        await processor.chargeSavedCard(charge);
        expect(await processor.chargeSavedCard(charge)).toEqual({ kind: "duplicate" });
      });

      test("with another e-mail address than the card's is refused, and nothing is made of it", async () => {
        const { card } = await saveCard();
        const charge = chargeOf(card, { email: "someone@else.example" });
        expect(await processor.chargeSavedCard(charge)).toMatchObject({ kind: "rejected", retry: "new_card" });
        expect(await processor.lookUp(charge.reference)).toEqual({ kind: "not_found" });
        expect(await processor.chargeSavedCard({ ...charge, email: card.email })).toEqual(state({ kind: "succeeded" }));
      });

      test("never tells its token or its owner's address in a reason", async () => {
        const { card } = await saveCard();
        const answer = await processor.chargeSavedCard(chargeOf(card, { email: "someone@else.example" }));
        const said = JSON.stringify(answer);
        expect(said).not.toContain(card.token);
        expect(said).not.toContain("someone@else.example");
        expect(said).not.toContain(card.email);
      });
    });

    describe("a refund", () => {
      test("reverses what was paid, once", async () => {
        const { reference } = await saveCard();
        expect(await processor.refund({ reference, amountKobo })).toEqual({ kind: "accepted" });
        expect(await processor.lookUp(reference)).toEqual({ kind: "reversed" });
        expect(await processor.refund({ reference, amountKobo })).toEqual({ kind: "already_refunded" });
        expect(await processor.lookUp(reference)).toEqual({ kind: "reversed" });
      });

      test("of what was never paid is refused", async () => {
        const { reference } = await startPage();
        expect(await processor.refund({ reference, amountKobo })).toMatchObject({ kind: "rejected" });
        expect(await processor.refund({ reference: newReference(), amountKobo })).toMatchObject({ kind: "rejected" });
      });

      test("leaves the card as it is", async () => {
        const { reference, card } = await saveCard();
        await processor.refund({ reference, amountKobo });
        expect(await processor.chargeSavedCard(chargeOf(card))).toEqual(state({ kind: "succeeded" }));
      });
    });

    describe("a card", () => {
      test("that is forgotten cannot be charged, and is forgotten however often one asks", async () => {
        const { card } = await saveCard();
        expect(await processor.forgetCard(card.token)).toEqual({ kind: "forgotten" });
        const charge = chargeOf(card);
        expect(await processor.chargeSavedCard(charge)).toMatchObject({ kind: "rejected", retry: "new_card" });
        expect(await fixture.timesCharged(charge.reference)).toBe(0);
        expect(await processor.forgetCard(card.token)).toEqual({ kind: "forgotten" });
      });

      test("that is forgotten leaves the others as they are", async () => {
        const { card: first } = await saveCard();
        const { card: second } = await saveCard();
        await processor.forgetCard(first.token);
        expect(await processor.chargeSavedCard(chargeOf(second))).toEqual(state({ kind: "succeeded" }));
      });
    });

    describe("a callback", () => {
      async function paid() {
        const { reference, page } = await startPage();
        await fixture.customer.pays(page);
        const { body, headers } = await fixture.callbackFor(reference);
        return { reference, body, headers };
      }

      const signedBy = (signature: string) => new Headers({ [fixture.signatureHeader]: signature });

      test("names the charge, in the body's own bytes", async () => {
        const { reference, body, headers } = await paid();
        expect(processor.readCallback(body, headers)).toEqual({ kind: "charge", reference });
      });

      test("is sent for a charge of a saved card too", async () => {
        const { card } = await saveCard();
        const charge = chargeOf(card);
        await processor.chargeSavedCard(charge);
        const { body, headers } = await fixture.callbackFor(charge.reference);
        expect(processor.readCallback(body, headers)).toEqual({ kind: "charge", reference: charge.reference });
      });

      test("without a signature, or with another one, is not read", async () => {
        const { body, headers } = await paid();
        const signature = headers.get(fixture.signatureHeader) ?? "";
        const first = signature.startsWith("0") ? "1" : "0";
        expect(processor.readCallback(body, new Headers())).toBeNull();
        expect(processor.readCallback(body, signedBy(""))).toBeNull();
        expect(processor.readCallback(body, signedBy("not hex at all"))).toBeNull();
        expect(processor.readCallback(body, signedBy(first + signature.slice(1)))).toBeNull();
        expect(processor.readCallback(body, signedBy(signature.slice(0, -2)))).toBeNull();
        expect(processor.readCallback(body, signedBy(`${signature}00`))).toBeNull();
      });

      test("with a changed body is not read", async () => {
        const { body, headers } = await paid();
        expect(processor.readCallback(Buffer.concat([body, Buffer.from(" ")]), headers)).toBeNull();
        expect(processor.readCallback(body.subarray(0, -1), headers)).toBeNull();
        expect(processor.readCallback(new Uint8Array(0), headers)).toBeNull();
      });
    });
  });
}
