import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { createHmac } from "node:crypto";
import type { Rejected, Unknown } from "../../../src/billing/processor.ts";
import { createSandbox } from "../../../src/billing/sandbox/sandbox.ts";
import { cards, createTestSandbox, type TestSandbox } from "../../support/sandbox.ts";

let world: TestSandbox;
beforeEach(async () => {
  world = await createTestSandbox();
});
afterEach(() => world.end());

const stateOf = (reference: string) => world.sandbox.lookUp(reference);
const rejectedAs = (retry: Rejected["retry"]): Rejected => ({
  kind: "rejected",
  reason: expect.any(String),
  retry,
});

describe("a charge of a saved card", () => {
  test("that pays is told of at once, by a look-up and by a callback", async () => {
    const card = await world.saveCard(cards.good);
    const answer = await world.charge(card.token, { reference: "sub-a" });
    expect(answer).toMatchObject({
      kind: "state",
      state: { kind: "succeeded", reference: "sub-a", amountKobo: 250_000, requestedKobo: 250_000, card },
    });
    expect(answer).toEqual({ kind: "state", state: await stateOf("sub-a") } as typeof answer);
    const last = world.callbacks.at(-1);
    expect(last && world.sandbox.readCallback(last.body, last.headers)).toEqual({ kind: "charge", reference: "sub-a" });
  });

  test("of a card that is empty by then fails", async () => {
    const { token } = await world.saveCard(cards.emptyTomorrow);
    const failed = { kind: "failed", reason: "Declined", retry: "later" } as const;
    expect(await world.charge(token, { reference: "sub-a" })).toEqual({ kind: "state", state: failed });
    expect(await stateOf("sub-a")).toEqual(failed);
    expect(world.callbacks).toHaveLength(1);
  });

  test("is made once for a reference, also for two who come together, and whatever became of the card", async () => {
    const { token } = await world.saveCard(cards.good);
    const both = await Promise.all([1, 2].map(() => world.charge(token, { reference: "sub-a" })));
    expect(both.map(({ kind }) => kind)).toEqual(["state", "duplicate"]);
    await world.sandbox.forgetCard(token);
    expect(await world.charge(token, { reference: "sub-a" })).toEqual({ kind: "duplicate" });
    expect(world.callbacks).toHaveLength(2);
  });

  test("needs the very e-mail address, a known token and a card that can be charged again", async () => {
    const { token } = await world.saveCard(cards.good);
    const { accessCode } = await world.open();
    await world.sandbox.pay(accessCode, cards.onceOnly);
    const onceOnly = (await world.books.findTransaction({ accessCode }))?.cardToken ?? "";
    for (const [asked, email] of [
      [token, "OPS@acme.example"],
      ["SBX_AUTH_none", "ops@acme.example"],
      [onceOnly, "ops@acme.example"],
    ] as const) {
      expect(await world.charge(asked, { email, reference: "sub-a" })).toEqual(rejectedAs("new_card"));
    }
    expect(await stateOf("sub-a")).toEqual({ kind: "not_found" });
    expect(await world.charge(token, { reference: "sub-a" })).toMatchObject({ kind: "state" });
  });

  test("of a forgotten card is refused; what it has paid stays paid", async () => {
    const { token } = await world.saveCard(cards.good, { reference: "ver-a" });
    expect(await world.sandbox.forgetCard(token)).toEqual({ kind: "forgotten" });
    expect(await world.sandbox.forgetCard(token)).toEqual({ kind: "forgotten" });
    expect(await world.sandbox.forgetCard("SBX_AUTH_none")).toEqual({ kind: "forgotten" });
    expect(await world.charge(token)).toEqual(rejectedAs("new_card"));
    expect(await stateOf("ver-a")).toMatchObject({ kind: "succeeded", card: { token } });
  });
});

describe("a refund", () => {
  test("reverses the payment, once", async () => {
    const { token } = await world.saveCard(cards.good, { reference: "ver-a" });
    await world.charge(token, { reference: "sub-a" });
    const whole = { reference: "sub-a", amountKobo: 250_000 };
    const both = await Promise.all([world.sandbox.refund(whole), world.sandbox.refund(whole)]);
    expect(both).toEqual([{ kind: "accepted" }, { kind: "already_refunded" }]);
    expect(await stateOf("sub-a")).toEqual({ kind: "reversed" });
    expect(await stateOf("ver-a")).toMatchObject({ kind: "succeeded" });
  });

  test("of what was never paid, or of another amount, is refused", async () => {
    const { reference, amountKobo } = await world.open();
    expect(await world.sandbox.refund({ reference, amountKobo })).toEqual(rejectedAs("operator"));
    expect(await world.sandbox.refund({ reference: "ver-none", amountKobo })).toEqual(rejectedAs("operator"));
    await world.saveCard(cards.good, { reference: "ver-a" });
    expect(await world.sandbox.refund({ reference: "ver-a", amountKobo: 1 })).toEqual(rejectedAs("operator"));
    expect(await stateOf("ver-a")).toMatchObject({ kind: "succeeded" });
  });

  test("of a hosted page closes it", async () => {
    const { accessCode, reference, amountKobo } = await world.open();
    await world.sandbox.pay(accessCode, cards.good);
    await world.sandbox.refund({ reference, amountKobo });
    expect(await world.sandbox.pay(accessCode, cards.good)).toMatchObject({ page: { state: "reversed" } });
    expect(world.callbacks).toHaveLength(1);
  });
});

describe("a callback", () => {
  const callback = async () => {
    await world.saveCard(cards.good, { reference: "ver-a" });
    const [told] = world.callbacks;
    if (!told) throw new Error("a payment is told of");
    return told;
  };
  const signed = (body: Uint8Array, signature: string) =>
    world.sandbox.readCallback(body, new Headers({ "X-Paystack-Signature": signature }));

  test("has Paystack's form and no secret", async () => {
    const { body, headers } = await callback();
    const text = new TextDecoder().decode(body);
    expect(JSON.parse(text)).toMatchObject({
      event: "charge.success",
      data: { reference: "ver-a", status: "success", amount: 10_000, currency: "NGN", domain: "test" },
    });
    expect(text).not.toContain("SBX_");
    expect(text).not.toContain("acme");
    expect(headers.get("x-paystack-signature")).toMatch(/^[0-9a-f]{128}$/);
    expect(world.sandbox.readCallback(body, headers)).toEqual({ kind: "charge", reference: "ver-a" });
  });

  test("is read over the very bytes, and only with its signature", async () => {
    const { body, headers } = await callback();
    const signature = headers.get("x-paystack-signature") ?? "";
    expect(signed(body, signature.toUpperCase())).not.toBeNull();
    expect(signed(new Uint8Array([...body, 0x20]), signature)).toBeNull();
    for (const wrong of ["", "0".repeat(128), signature.slice(2), `${signature}00`, `${signature.slice(0, -1)}z`]) {
      expect(signed(body, wrong)).toBeNull();
    }
    expect(world.sandbox.readCallback(body, new Headers())).toBeNull();
  });

  test("is not signed with the secret itself, which the likeness of cards shares", async () => {
    const { body } = await callback();
    expect(signed(body, createHmac("sha512", new Uint8Array(32).fill(7)).update(body).digest("hex"))).toBeNull();
  });

  test("survives a restart: the same secret reads it", async () => {
    const { body, headers } = await callback();
    const deps = { books: world.books, clock: world.clock, publicUrl: () => "", postCallback: async () => {} };
    const later = createSandbox({ ...deps, secret: new Uint8Array(32).fill(7) });
    expect(later.readCallback(body, headers)).toEqual({ kind: "charge", reference: "ver-a" });
    const other = createSandbox({ ...deps, secret: new Uint8Array(32).fill(8) });
    expect(other.readCallback(body, headers)).toBeNull();
    expect(() => createSandbox({ ...deps, secret: new Uint8Array(16) })).toThrow(/32 bytes/);
  });
});

test("a store that takes no writes makes the answer unknown, and no call throws", async () => {
  const { token } = await world.saveCard(cards.good, { reference: "ver-a" });
  await world.store.close();
  const unknown: Unknown = { kind: "unknown", reason: expect.any(String), retryAfterMs: 1_000 };
  expect(await world.sandbox.startVerification(world.request())).toEqual(unknown);
  expect(await world.sandbox.forgetCard(token)).toEqual(unknown);
});
